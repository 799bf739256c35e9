#include <millrace/image/resize/plane_kernels.hpp>
#include <millrace/image/resize/rgb_rows.hpp>

#include "../stored_planes.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

mr::crop_box random_box(mr::rng& d, std::size_t height, std::size_t width) {
  const auto of = [&](std::size_t n) { return static_cast<std::size_t>(d.between(1, static_cast<std::int64_t>(n))); };
  mr::crop_box box{.width = of(width), .height = of(height)};
  box.left = of(width - box.width + 1) - 1;
  box.top = of(height - box.height + 1) - 1;
  return box;
}

template <class Kernels>
std::size_t wrong_samples(mr::detail::basic_rgb_rows<Kernels>& rows, const mr::detail::jpeg_planes& planes,
                          const mr::crop_box& box, const mr::image& expected) {
  rows.start(planes, box.left, box.left + box.width);
  const auto down = static_cast<std::size_t>(planes.vertical_sampling);
  std::size_t wrong = 0;
  for (std::size_t y = box.top / down * down; y < box.top + box.height; y += 4) {
    rows.compute(y);
    for (std::size_t k = 0; k < 4; ++k)
      for (std::size_t x = box.left; x < box.left + box.width && y + k >= box.top && y + k < box.top + box.height; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          wrong += rows.row(c, k)[x - rows.left()] != expected(y + k, x, c) ? 1 : 0;
  }
  return wrong;
}

template <class Kernels>
void check_against_libjpeg(bool wide_vectors = false) {
  mr::rng d({.seed = 11});
  mr::detail::basic_rgb_rows<Kernels> rows(wide_vectors);
  for (const auto sampling : slow::samplings)
    for (int i = 0; i < 120; ++i) {
      const auto height = static_cast<std::size_t>(i < 49 ? i / 7 + 1 : d.between(1, 90));
      const auto width = static_cast<std::size_t>(i < 49 ? i % 7 + 1 : d.between(1, 150));
      auto pixels = slow::photo(height, width, 3, static_cast<std::uint64_t>(i));
      if (i % 3 == 0)
        for (auto& v : pixels.span()) v = d.chance(0.5) ? 255 : 0;
      const auto file = mr::encode_jpeg(pixels, {.quality = i % 2 == 0 ? 100 : 80, .sampling = sampling});
      const auto expected = slow::decode(file);
      slow::stored_planes planes(file);
      for (int k = 0; k < 4; ++k) {
        const auto box = k == 0 ? mr::crop_box{.width = width, .height = height} : random_box(d, height, width);
        const auto cut = planes.region(slow::with_margin(box, height, width), d.below(100));
        CAPTURE(static_cast<int>(sampling));
        CAPTURE(height);
        CAPTURE(width);
        CAPTURE(box.left);
        CAPTURE(box.width);
        REQUIRE(wrong_samples(rows, cut, box, expected) == 0);
      }
    }
}

}  // namespace

TEST_CASE("rows computed from planes are libjpeg's own: portable code") {
  check_against_libjpeg<mr::detail::portable_upsampling>();
}

#if defined __x86_64__ || defined __aarch64__
using vector_upsampling = mr::detail::word_layer::upsampling;

TEST_CASE("rows computed from planes are libjpeg's own: AVX2 or NEON") {
  if (!mr::detail::cpu_has_word_layer()) return;
  check_against_libjpeg<vector_upsampling>();
}

TEST_CASE("rows computed from planes are libjpeg's own: AVX-512") {
  if (!mr::detail::cpu_has_wide_vectors()) return;
  check_against_libjpeg<vector_upsampling>(true);
}

TEST_CASE("colors are equal for every luma, blue and red") {
  if (!mr::detail::cpu_has_word_layer()) return;
  std::vector<std::uint8_t> luma(256), blue(256), red(256);
  std::vector<std::uint8_t> rows[2][3];
  for (auto& build : rows)
    for (auto& channel : build) channel.resize(256);
  for (std::size_t x = 0; x < 256; ++x) red[x] = static_cast<std::uint8_t>(x);
  for (const int y : {0, 1, 100, 127, 128, 129, 200, 254, 255})
    for (int u = 0; u < 256; ++u) {
      std::fill(luma.begin(), luma.end(), static_cast<std::uint8_t>(y));
      std::fill(blue.begin(), blue.end(), static_cast<std::uint8_t>(u));
      const auto row = [&](auto& to) {
        return mr::detail::color_row<std::uint8_t>{.luma = luma.data(), .blue = blue.data(), .red = red.data(),
                                                   .count = 256, .rgb = {to[0].data(), to[1].data(), to[2].data()}};
      };
      mr::detail::portable_upsampling::color_full(row(rows[0]));
      vector_upsampling::color_full(row(rows[1]));
      for (std::size_t c = 0; c < 3; ++c) REQUIRE(rows[0][c] == rows[1][c]);
    }
}
#endif
