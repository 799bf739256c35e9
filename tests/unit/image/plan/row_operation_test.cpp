#include <millrace/device/normalize.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/millrace.hpp>

#include "../random_jpegs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace mr = millrace;

namespace {

constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};

/// Adds the position and a number to each byte: earlier operations change the result.
struct position_added final : mr::row_operation {
  explicit position_added(unsigned by) : number(by) {}
  void run(const mr::rgb_row& row, mr::scratch&) const override {
    REQUIRE(row.pixels.size() == 3 * row.height * row.width);
    for (std::size_t i = 0; i < row.pixels.size(); ++i)
      row.pixels[i] = static_cast<std::uint8_t>(row.pixels[i] * number + i / row.width);
  }
  const unsigned number;
};

struct planned {
  mr::picture plain, operated;
  std::vector<std::shared_ptr<const position_added>> operations{};
};

planned draw(mr::rng& d, const std::vector<std::byte>& file) {
  const mr::jpeg_options options{
      .quality = d.chance(0.5) ? mr::picture_quality::fast : mr::picture_quality::exact,
      .decoder = d.chance(0.3) ? mr::picture_decoder::libjpeg : mr::picture_decoder::automatic};
  const mr::picture plain = slow::planned(mr::jpeg(slow::view(file), options), mr::rng({.seed = d.bits()}));
  planned p{.plain = plain, .operated = plain};
  for (std::uint64_t count = d.below(4); count > 0; --count) {
    p.operations.push_back(std::make_shared<position_added>(static_cast<unsigned>(d.below(5))));
    p.operated = d.chance(0.5) ? p.operated.apply(p.operations.back())
                               : std::move(p.operated).apply(p.operations.back());
  }
  return p;
}

mr::image expected_of(const planned& p, mr::scratch& s) {
  mr::image pixels = p.plain.pixels(s);
  const auto shape = pixels.shape();
  for (const auto& operation : p.operations)
    operation->run({.pixels = pixels.span(), .height = shape[0], .width = shape[1]}, s);
  return pixels;
}

template <class T>
std::vector<T> numbers_of(const mr::image& pixels) {
  const auto [height, width, channels] = pixels.shape();
  std::vector<T> numbers(channels * height * width);
  mr::normalize<T>({.data = pixels.data(), .shape = {1, height, width, channels}},
                   {.data = numbers.data(), .shape = {1, channels, height, width}},
                   {.mean = {imagenet.mean[0], imagenet.mean[1], imagenet.mean[2]},
                    .std = {imagenet.std[0], imagenet.std[1], imagenet.std[2]}, .layout = mr::image_layout::nchw});
  return numbers;
}

template <class T>
void check_numbers(const planned& p, const mr::image& expected, mr::scratch& s) {
  const mr::normalized_picture<T> normalized(p.operated, imagenet);
  std::vector<T> row(expected.size());
  normalized.render(row, s);
  const std::vector<T> numbers = numbers_of<T>(expected);
  REQUIRE(std::memcmp(row.data(), numbers.data(), row.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("operations run on the finished pixels in their order, alone, with others, and before conversion to "
          "numbers") {
  mr::rng d({.seed = 4});
  mr::scratch s;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < mr::picture::together; ++i) files.push_back(slow::draw_file(d, 90).bytes);
    std::vector<planned> all;
    for (const auto& file : files) all.push_back(draw(d, file));
    std::vector<std::vector<std::uint8_t>> rows;
    std::vector<const mr::picture*> items;
    for (const planned& p : all) {
      rows.emplace_back(3 * p.operated.height() * p.operated.width());
      items.push_back(&p.operated);
    }
    const std::vector<std::span<std::uint8_t>> places(rows.begin(), rows.end());
    mr::picture::render_together(items, places, s);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const mr::image expected = expected_of(all[i], s), alone = all[i].operated.pixels(s);
      REQUIRE(std::memcmp(rows[i].data(), expected.data(), expected.size()) == 0);
      REQUIRE(std::memcmp(alone.data(), expected.data(), expected.size()) == 0);
      check_numbers<float>(all[i], expected, s);
      check_numbers<mr::f16>(all[i], expected, s);
      check_numbers<mr::bf16>(all[i], expected, s);
    }
  }
}

TEST_CASE("a picture with a plan is rendered to the pixels that the plan computes from the picture's") {
  mr::rng d({.seed = 3});
  mr::scratch s;
  mr::image pixels({60, 80, 3});
  for (std::uint8_t& value : pixels.span()) value = static_cast<std::uint8_t>(d.below(256));
  const std::vector<std::byte> file = mr::encode_jpeg(pixels);
  for (int round = 0; round < 30; ++round) {
    const mr::picture plain = mr::jpeg(mr::bytes::borrowed(std::span<const std::byte>(file)))
                                  .random_resized_crop({.width = 40, .height = 32}, d).random_flip(d);
    mr::photometric_plan first, second;
    first.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, d);
    if (round % 2 == 0) second.rand_augment({.width = 40, .height = 32}, d);
    mr::image expected = plain.pixels(s);
    first.run(expected.span(), 40, 32, s);
    second.run(expected.span(), 40, 32, s);
    const mr::image got = plain.apply(first).apply(second).pixels(s);
    REQUIRE(std::equal(got.span().begin(), got.span().end(), expected.span().begin()));
  }
}
