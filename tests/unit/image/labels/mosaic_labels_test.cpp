#include <millrace/base/crc32c.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/mosaic_labels.hpp>

#include "../label_files.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

/// Four images, and maps whose labels are different numbers.
struct mosaic_sources {
  std::array<std::vector<std::byte>, 4> files{};
  std::array<std::string, 4> maps{};

  template <class Size>
  explicit mosaic_sources(const Size& size_of) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto [width, height] = size_of(i);
      files[i] = mr::encode_jpeg(mr::image({height, width, 3}));
      auto numbers = slow::labels::of_numbers(width, height);
      for (auto& n : numbers.samples) n = static_cast<std::uint16_t>(n + 10'000 * i);
      maps[i] = slow::npy(numbers, 16);
    }
  }
  mr::label_map<std::uint16_t> map(std::size_t i) const {
    return mr::labels<std::uint16_t>(mr::bytes::borrowed(maps[i], "npy"),
                                     {.ignore = static_cast<std::uint32_t>(60'000 + i)});
  }
  mr::mosaic_labels<std::uint16_t> labels(const mr::mosaic_picture& mosaic) const {
    return {mosaic, {map(0), map(1), map(2), map(3)}};
  }
};

}  // namespace

TEST_CASE("the labels of a mosaic are those of each map in its quarter, with a corner at the center") {
  mr::rng d({.seed = 82});
  mr::scratch s;
  for (int round = 0; round < 80; ++round) {
    const mosaic_sources of([&](std::size_t) { return std::array{d.below(70) + 1, d.below(70) + 1}; });
    const auto image = [&](std::size_t i) {
      mr::picture p = mr::jpeg(slow::view(of.files[i]));
      if ((static_cast<std::size_t>(round) + i) % 2 == 0) p = p.flip();
      return i % 3 == 1 ? p.resize(41, 23) : p;
    };
    mr::rng same({.seed = d.bits()});
    const mr::mosaic_picture mosaic({image(0), image(1), image(2), image(3)},
                                    {.size = {.width = d.below(90) + 2, .height = d.below(90) + 2},
                                     .min_center = d.uniform(0, 0.5)}, same);
    const auto labels = of.labels(mosaic);
    const auto [height, width] = labels.shape();
    const std::size_t cy = mosaic.parts()[0].height(), cx = mosaic.parts()[0].width();
    std::vector<std::uint16_t> row(height * width), expected;
    labels.render(row, s);
    std::array<mr::tensor<std::uint16_t, 2>, 4> full;   // of the images alone
    for (std::size_t i = 0; i < 4; ++i) full[i] = of.map(i).apply(image(i).geometry()).values();
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const std::size_t i = (y >= cy ? 2 : 0) + (x >= cx ? 1 : 0);
        const std::size_t own_y = y >= cy ? y - cy : y + full[i].shape()[0] - cy;   // wraps around outside
        const std::size_t own_x = x >= cx ? x - cx : x + full[i].shape()[1] - cx;
        expected.push_back(own_y < full[i].shape()[0] && own_x < full[i].shape()[1]
                               ? full[i](own_y, own_x)
                               : static_cast<std::uint16_t>(60'000 + i));
      }
    REQUIRE(row == expected);
    REQUIRE(std::equal(row.begin(), row.end(), labels.values().span().begin()));
    CHECK_THROWS_AS(labels.render(std::span(row).first(row.size() - 1), s), mr::setup_error);
  }
}

TEST_CASE("frozen: the labels of a mosaic equal those of NumPy (mosaic_oracle.py)") {
  const mosaic_sources of([](std::size_t i) { return std::array{20 + 11 * i, 15 + 13 * i}; });
  const auto image = [&](std::size_t i) {
    const mr::picture p = mr::jpeg(slow::view(of.files[i]));
    return i == 1 ? p.flip() : i == 2 ? p.resize(17, 29) : p;
  };
  mr::rng random({.seed = 1});
  const mr::mosaic_picture mosaic({image(0), image(1), image(2), image(3)},
                                  {.size = {.width = 64, .height = 48}, .min_center = 0.5}, random);
  const auto labels = of.labels(mosaic).values();
  CHECK(mr::detail::crc32(std::as_bytes(labels.span())) == 695614581U);
  const mosaic_sources other([](std::size_t) { return std::array<std::size_t, 2>{9, 9}; });
  CHECK_THROWS_AS(other.labels(mosaic), mr::data_error);
}
