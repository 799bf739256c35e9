#include <millrace/image/jpeg/jpeg_encoder.hpp>

#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

namespace mr = millrace;

TEST_CASE("encoded images are decoded nearly unchanged, in every kind of file") {
  mr::image smooth({50, 70, 3});
  for (std::size_t y = 0; y < 50; ++y)
    for (std::size_t x = 0; x < 70; ++x) {
      smooth(y, x, 0) = static_cast<std::uint8_t>(60 + y + x);
      smooth(y, x, 1) = static_cast<std::uint8_t>(200 - y);
      smooth(y, x, 2) = static_cast<std::uint8_t>(90 + x);
    }
  for (const auto sampling : {mr::chroma_sampling::yuv444, mr::chroma_sampling::yuv422, mr::chroma_sampling::yuv440,
                              mr::chroma_sampling::yuv420, mr::chroma_sampling::yuv411})
    for (const bool progressive : {false, true})
      for (const unsigned restart : {0U, 2U}) {
        const auto file = mr::encode_jpeg(
            smooth, {.quality = 98, .sampling = sampling, .progressive = progressive, .restart_rows = restart});
        CHECK(slow::compare(slow::decode(file), slow::real(smooth)).mean < 1);
      }
  const auto rgb = mr::encode_jpeg(smooth, {.quality = 100, .keep_rgb = true});
  CHECK(slow::compare(slow::decode(rgb), slow::real(smooth)).max <= 1);
  const auto gray = slow::photo(31, 33, 1, 1);
  CHECK(slow::compare(slow::decode(mr::encode_jpeg(gray, {.quality = 100}), JCS_GRAYSCALE), slow::real(gray)).max <= 2);
}

TEST_CASE("options have their documented effects") {
  const auto p = slow::photo(64, 64, 3, 2);
  const auto plain = mr::encode_jpeg(p, {.optimize_tables = false});
  CHECK(mr::encode_jpeg(p).size() < plain.size());
  CHECK(mr::encode_jpeg(p, {.quality = 20}).size() < plain.size() / 2);
  CHECK(mr::encode_jpeg(p, {.arithmetic = true}).size() < plain.size());
  CHECK(mr::encode_jpeg(p) == mr::encode_jpeg(p));
  std::size_t markers = 0;
  const auto restarts = mr::encode_jpeg(p, {.restart_rows = 1});   // 4 rows of 16 x 16 blocks, a marker between each
  for (std::size_t i = 0; i + 1 < restarts.size(); ++i)
    markers +=
        restarts[i] == std::byte{0xff} && restarts[i + 1] >= std::byte{0xd0} && restarts[i + 1] <= std::byte{0xd7};
  CHECK(markers == 3);
}

TEST_CASE("images that JPEG cannot store are refused") {
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 2})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({0, 4, 3})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({1, 65'501, 1})), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 3}), {.quality = 0}), mr::setup_error);
  CHECK_THROWS_AS((void)mr::encode_jpeg(mr::image({4, 4, 3}), {.quality = 101}), mr::setup_error);
}
