#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/png/png.hpp>

#include "../png/plain_libpng.hpp"
#include "../png/png_files.hpp"
#include "../slow_geometry.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace mr = millrace;
using slow::plain_libpng;

namespace {

std::vector<std::byte> draw_rgb16(mr::rng& d, std::size_t width, std::size_t height) {
  return slow::make_png(slow::random_samples({.width = width, .height = height, .color = d.chance(0.3) ? 6U : 2U,
                                              .depth = 16, .interlaced = d.chance(0.3)}, d.bits()),
                        {.seed = d.bits()});
}

/// The samples of a file by libpng.
struct stored_samples {
  plain_libpng reference;
  std::size_t channels;

  explicit stored_samples(std::span<const std::byte> file)
      : reference(file, plain_libpng::as::samples), channels(reference.row_bytes / reference.width / 2) {
    REQUIRE(reference.error == "");
  }
  std::uint16_t at(std::size_t y, std::size_t x, std::size_t c) const {
    std::uint16_t sample = 0;
    std::memcpy(&sample, reference.row(y) + 2 * (channels * x + c), sizeof sample);
    return sample;
  }
};

/// Whether an image has the samples that fractions select.
bool holds_samples(const mr::u16_picture& p, const slow::picture_axes& axes, const stored_samples& stored) {
  const auto got = p.values();
  if (got.shape()[0] != static_cast<std::size_t>(axes.down.count) ||
      got.shape()[1] != static_cast<std::size_t>(axes.across.count))
    return false;
  for (std::size_t y = 0; y < got.shape()[0]; ++y)
    for (std::size_t x = 0; x < got.shape()[1]; ++x) {
      const bool is_image = axes.shows(y, x);
      const auto [row, column] = is_image ? axes.nearest(y, x) : std::pair<std::size_t, std::size_t>();
      for (std::size_t c = 0; c < 3; ++c)
        if (got(y, x, c) != (is_image ? stored.at(row, column, c) : 0)) return false;
    }
  return true;
}

template <class Error, class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.message() + ". " + e.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("16-bit RGB, rendered by any chain of steps in any orientation, has the samples of libpng") {
  mr::rng d({.seed = 61});
  for (int i = 0; i < 200; ++i) {
    const std::size_t width = d.below(i % 9 == 0 ? 3 : 70) + 1, height = d.below(i % 9 == 1 ? 3 : 70) + 1;
    const auto file = draw_rgb16(d, width, height);
    const stored_samples stored(file);
    slow::chained_picture p(mr::png(slow::view(file)), 1);
    if (i % 3 != 0) p.take_random_steps(d, 6, 100, i % 2 == 1);
    CAPTURE(width);
    CAPTURE(height);
    INFO(p.steps);
    const mr::u16_picture own = p.picture.u16();
    CHECK(own.geometry().width() == p.picture.width());
    REQUIRE(holds_samples(own, p.axes, stored));
    const int orientation = static_cast<int>(d.between(1, 8));   // the same samples with the geometry of another image
    const auto photo = slow::with_orientation(mr::encode_jpeg(mr::image({height, width, 3})), orientation);
    slow::chained_picture other(mr::jpeg(slow::view(photo), {.apply_orientation = true}), orientation);
    other.take_random_steps(d, 6, 100, i % 2 == 0);
    INFO(other.steps);
    REQUIRE(holds_samples(mr::png(slow::view(file)).u16().apply(other.picture.geometry()), other.axes, stored));
  }
}

TEST_CASE("16-bit RGB of fixed files has frozen digests") {
  const auto digest_of = [](const mr::u16_picture& p) {
    std::uint32_t sum = 0;
    const auto samples = p.values();
    for (const std::uint16_t v : samples.span()) sum = sum * 16'777'619U ^ v;   // independent of the byte order
    return sum;
  };
  const auto file = slow::make_png(slow::random_samples({.width = 61, .height = 47, .depth = 16}, 3));
  const mr::picture p = mr::png(slow::view(file));
  CHECK(digest_of(p.u16()) == 1'309'789'174);
  const mr::picture part = p.crop({.left = 7, .top = 9, .width = 40, .height = 30}).resize(25, 33).flip();
  CHECK(digest_of(part.u16()) == 3'417'592'397);
}

TEST_CASE("normalized 16-bit samples equal a loop") {
  mr::rng d({.seed = 62});
  mr::scratch s;
  const auto file = draw_rgb16(d, 33, 21);
  const mr::u16_picture p = mr::png(slow::view(file)).resize(17, 40).flip().u16();
  const auto samples = p.values();
  const auto check = [&]<class T>(T, const mr::sample_normalization& by) {
    const mr::normalized_u16_picture<T> plan(p, by);
    CHECK(plan.shape() == std::array<std::size_t, 3>{3, 17, 40});
    std::vector<T> row(3 * 17 * 40);
    plan.render(row, s);
    std::size_t wrong = 0;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < 17 * 40; ++i) {
        const auto scale = static_cast<float>(1 / by.std[c]), bias = static_cast<float>(-by.mean[c] / by.std[c]);
        const float value = std::fma(static_cast<float>(samples.span()[3 * i + c]), scale, bias);
        const T expected = mr::detail::to_element<T>(value);
        if (std::memcmp(&expected, &row[c * 17 * 40 + i], sizeof(T)) != 0) ++wrong;
      }
    CHECK(wrong == 0);
  };
  const mr::sample_normalization kitti{.mean = {32'768, 32'768, 0}, .std = {64, 64, 1}};
  check(0.0F, kitti);
  check(mr::f16{}, {.mean = {32'768, 30'000, 77}, .std = {300, 1'000.5, 4'000}});
  check(mr::bf16{}, {.mean = {32'768, 30'000, 77}, .std = {300, 1'000.5, 4'000}});
  // The devkit of KITTI computes (sample - 32768) / 64, which f32 represents exactly.
  std::vector<float> flow(3 * 17 * 40);
  mr::normalized_u16_picture<float>(p, kitti).render(flow, s);
  for (std::size_t i = 0; i < 17 * 40; ++i) {
    REQUIRE(flow[i] == (static_cast<float>(samples.span()[3 * i]) - 32'768.0F) / 64.0F);
    REQUIRE(flow[2 * 17 * 40 + i] == static_cast<float>(samples.span()[3 * i + 2]));
  }
  CHECK_THROWS_WITH_AS(mr::normalized_u16_picture<float>(p, {.std = {1, 0, 1}}),
                       doctest::Contains("got mean 0.000000 and std 0.000000 in channel 1"), mr::setup_error);
}

TEST_CASE("u16() names the files, plans and rows that it refuses") {
  const auto of_kind = [](unsigned color, unsigned depth) {
    return slow::make_png(slow::random_samples({.width = 5, .height = 4, .color = color, .depth = depth}, 1));
  };
  const auto refused = [](const std::vector<std::byte>& file) {
    return message_of<mr::data_error>([&] { static_cast<void>(mr::png(slow::view(file)).u16()); });
  };
  CHECK(refused(of_kind(0, 16)) == "the PNG is not 16-bit RGB: got 1 channels of 16 bits, expected 3 or 4 channels of "
                                   "16 bits. Use mr::labels<std::uint16_t>() for gray or palette PNGs");
  CHECK(refused(of_kind(2, 8)).ends_with("Leave out u16() for 8-bit images"));
  CHECK(refused(of_kind(4, 16)).ends_with("Write the samples as a 16-bit RGB PNG"));
  const auto jpeg = mr::encode_jpeg(mr::image({4, 4, 3}));
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(mr::jpeg(slow::view(jpeg)).u16()); })
            .find("got the format jpeg, expected a PNG of 16-bit RGB") != std::string::npos);
  const auto file = of_kind(2, 16);
  const mr::picture p = mr::png(slow::view(file));
  CHECK(message_of<mr::setup_error>([&] { static_cast<void>(p.apply(mr::photometric_plan().invert()).u16()); })
            .find("cannot have operations on its pixels") != std::string::npos);
  CHECK(message_of<mr::setup_error>([&] {
          static_cast<void>(mr::png(slow::view(file), {.background = mr::rgb_color{1, 2, 3}}).u16());
        }).find("cannot have a background") != std::string::npos);
  const auto larger = mr::encode_jpeg(mr::image({4, 6, 3}));
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(p.u16().apply(mr::jpeg(slow::view(larger)).geometry())); })
            .find("got 5 x 4 pixels, expected 6 x 4") != std::string::npos);
  mr::scratch s;
  std::vector<std::uint16_t> row(59);
  CHECK(message_of<mr::setup_error>([&] { p.u16().render(row, s); }).find("got 59 elements") != std::string::npos);
  std::vector<std::byte> cut(file.begin(), file.end() - 40);
  CHECK_THROWS_AS(static_cast<void>(mr::png(slow::view(cut)).u16().values()), mr::data_error);
  CHECK(message_of<mr::data_error>([&] { static_cast<void>(mr::labels<std::uint16_t>(slow::view(file))); })
            .ends_with("Use mr::png(field).u16() for samples of 16-bit RGB, such as optical flow"));
}
