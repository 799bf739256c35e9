#include <millrace/device/normalize.hpp>
#include <millrace/millrace.hpp>

#include "../random_jpegs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace mr = millrace;

namespace {

constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};

/// The u8 image, and its normalize().
template <class T>
mr::tensor<T, 4> expected_of(const mr::picture& p, mr::scratch& s) {
  const mr::image pixels = p.pixels(s);
  const auto [height, width, channels] = pixels.shape();
  mr::tensor<T, 4> numbers({1, channels, height, width});
  mr::normalize<T>({.data = pixels.data(), .shape = {1, height, width, channels}},
                   {.data = numbers.data(), .shape = numbers.shape()},
                   {.mean = {imagenet.mean[0], imagenet.mean[1], imagenet.mean[2]},
                    .std = {imagenet.std[0], imagenet.std[1], imagenet.std[2]}, .layout = mr::image_layout::nchw});
  return numbers;
}

template <class T>
bool equal(const mr::tensor<T, 4>& expected, const std::vector<T>& row) {
  return row.size() == expected.size() && std::memcmp(row.data(), expected.data(), row.size() * sizeof(T)) == 0;
}

template <class T>
void check_against_normalize(std::uint64_t seed) {
  mr::rng d({.seed = seed});
  mr::scratch s;
  constexpr std::size_t together = mr::normalized_picture<T>::together;
  for (int round = 0; round < 25; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < together; ++i) files.push_back(slow::draw_file(d, 90).bytes);
    const mr::jpeg_options options{
        .quality = d.chance(0.5) ? mr::picture_quality::fast : mr::picture_quality::exact,
        .decoder = d.chance(0.3) ? mr::picture_decoder::libjpeg : mr::picture_decoder::automatic};
    std::vector<mr::normalized_picture<T>> pictures;
    std::vector<std::vector<T>> rows;
    std::vector<const mr::normalized_picture<T>*> items;
    std::vector<std::span<T>> places;
    for (std::size_t i = 0; i < together; ++i) {
      const mr::rng plan({.seed = seed, .sample = d.bits()});
      pictures.emplace_back(slow::planned(mr::jpeg(slow::view(files[i]), options), plan), imagenet);
      const auto shape = pictures.back().shape();
      rows.emplace_back(shape[0] * shape[1] * shape[2]);
    }
    for (std::size_t i = 0; i < together; ++i) {
      items.push_back(&pictures[i]);
      places.emplace_back(rows[i]);
    }
    mr::normalized_picture<T>::render_together(items, places, s);
    for (std::size_t i = 0; i < together; ++i) {
      CAPTURE(round);
      CAPTURE(i);
      const auto expected = expected_of<T>(pictures[i].plan(), s);
      REQUIRE(pictures[i].shape() == std::array{expected.shape()[1], expected.shape()[2], expected.shape()[3]});
      REQUIRE(equal(expected, rows[i]));
      std::vector<T> alone(rows[i].size());
      pictures[i].render(alone, s);
      REQUIRE(equal(expected, alone));
    }
  }
}

struct example {
  mr::normalized_picture<mr::f16> pixels;
  std::int32_t label;
};

}  // namespace

TEST_CASE("a normalized picture is the normalized u8 image, alone and with others, by either decoder") {
  check_against_normalize<float>(41);
  check_against_normalize<mr::f16>(42);
  check_against_normalize<mr::bf16>(43);
}

TEST_CASE("normalized images are a column of a batch") {
  mr::rng d({.seed = 44});
  std::vector<std::vector<std::byte>> files;
  for (int i = 0; i < 5; ++i) files.push_back(slow::draw_file(d, 60).bytes);
  const auto plan_of = [&](int i) { return mr::jpeg(slow::view(files[static_cast<std::size_t>(i)])).resize(24, 32); };
  const std::vector<int> numbers{0, 1, 2, 3, 4};
  auto flow = mr::from(numbers) | mr::map([&](int i) { return example{{plan_of(i), imagenet}, i}; }) |
              mr::batch<&example::pixels, &example::label>({.size = 5});
  mr::session run{std::move(flow), {.threads = 2}};
  mr::scratch s;
  std::size_t batches = 0;
  for (auto& b : run) {
    const auto pixels = b.get<&example::pixels>();
    const auto labels = b.get<&example::label>();
    REQUIRE(pixels.shape == std::array<std::size_t, 4>{5, 3, 24, 32});
    for (std::size_t row = 0; row < 5; ++row) {
      const auto expected = expected_of<mr::f16>(plan_of(labels.data[row]), s);
      CHECK(std::memcmp(pixels.data + row * expected.size(), expected.data(), expected.size() * sizeof(mr::f16)) == 0);
    }
    ++batches;
  }
  CHECK(batches == 1);
}

TEST_CASE("invalid means and deviations are refused, and a row of another size") {
  mr::rng d({.seed = 45});
  const auto file = slow::draw_file(d, 30).bytes;
  const auto plan = mr::jpeg(slow::view(file)).resize(4, 6);
  CHECK_THROWS_WITH_AS(mr::normalized_picture<float>(plan, {.std = {1, 0, 1}}),
                       doctest::Contains("std 0.000000 in channel 1"), mr::setup_error);
  const mr::normalized_picture<float> numbers(plan, {});
  mr::scratch s;
  std::vector<float> row(71);
  CHECK_THROWS_WITH_AS(numbers.render(row, s), doctest::Contains("got 71 elements, expected height * width * 3"),
                       mr::setup_error);
}
