// Decodes or renders images once, so that instructions.sh can count the instructions:
//
//   count_images ROW drawn 16                         # 16 images that this program draws and encodes
//   count_images ROW FILE 32                          # the first 32 crops of a file that write_crops.cpp wrote
//
// Rows: nothing (only reads or draws the images), exact, fast, planes (the built-in decoder alone), progressive
// (planes of progressive files), region (libjpeg-turbo decodes only the crop to RGBX, without a resize).
// Prints a digest, which is the same on every machine.
#include "../turbo.hpp"
#include "crop_file.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/scratch.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace {

namespace mr = millrace;
constexpr std::size_t side = 224;

/// Smooth shapes of several sizes, computed with integers, so that every machine draws the same pixels.
mr::image drawn_image(std::uint64_t number) {
  struct layer {
    std::size_t cell;   // pixels on a side of a cell with one random value; values between are interpolated
    std::int64_t weight;
  };
  constexpr layer layers[] = {{128, 48}, {32, 24}, {8, 12}, {4, 8}, {2, 4}};
  mr::image pixels({375, 500, 3});
  const auto [height, width, channels] = pixels.shape();
  std::vector<std::int64_t> sums(pixels.size(), 128 * 64);
  for (const layer& l : layers) {
    const auto n = static_cast<std::int64_t>(l.cell);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t c = i % channels, x = i / channels % width, y = i / channels / width;
      const auto corner = [&](std::size_t right, std::size_t below) {
        const std::uint64_t cell = (y / l.cell + below) << 32 | (x / l.cell + right);
        const std::uint64_t random = mr::detail::combine_keys(number * 4 + c, cell * 256 + l.cell);
        const auto dx = static_cast<std::int64_t>(x % l.cell), dy = static_cast<std::int64_t>(y % l.cell);
        return (static_cast<std::int64_t>(random % 256) - 128) * (right ? dx : n - dx) * (below ? dy : n - dy);
      };
      sums[i] += (corner(0, 0) + corner(1, 0) + corner(0, 1) + corner(1, 1)) * l.weight / (n * n);
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    pixels.data()[i] = static_cast<std::uint8_t>(std::clamp<std::int64_t>(sums[i] / 64, 0, 255));
  return pixels;
}

std::vector<bench::crop> drawn_crops(std::size_t count, bool progressive) {
  std::vector<bench::crop> crops;
  for (std::uint64_t i = 0; i < count; ++i) {
    const mr::image pixels = drawn_image(i);
    mr::rng random({.seed = 3, .sample = i});
    const auto [height, width, channels] = pixels.shape();
    crops.push_back({mr::detail::random_crop_box({.width = width, .height = height}, random),
                     mr::encode_jpeg(pixels, {.progressive = progressive, .optimize_tables = false})});
  }
  return crops;
}

std::uint64_t digest_of(const mr::detail::jpeg_planes_result& result, std::uint64_t before) {
  if (!result) return mr::detail::combine_keys(before, static_cast<std::uint64_t>(result.refusal));
  const auto& luma = result.planes.component[0];   // one row: the digest must not be a large part of the count
  return mr::detail::digest_bytes(
      std::as_bytes(std::span(luma.data + 4 * luma.stride_bytes, static_cast<std::size_t>(luma.width))), before);
}

/// Renders eight images at once, like a batch.
std::uint64_t rendered(const std::vector<bench::crop>& crops, const mr::jpeg_options& options) {
  constexpr std::size_t group = 8;
  static_assert(group <= mr::picture::together);
  std::vector<std::vector<std::uint8_t>> rows(group, std::vector<std::uint8_t>(side * side * 3));
  mr::scratch memory;
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i + group <= crops.size(); i += group) {
    std::vector<mr::picture> pictures;
    pictures.reserve(group);
    std::array<const mr::picture*, group> items;
    std::array<std::span<std::uint8_t>, group> to;
    for (std::size_t k = 0; k < group; ++k) {
      const bench::crop& c = crops[i + k];
      items[k] = &pictures.emplace_back(
          mr::jpeg(mr::bytes::borrowed(std::span(c.file)), options).crop(c.box).resize(side, side));
      to[k] = rows[k];
    }
    mr::picture::render_together(items, to, memory);
    for (const auto& row : rows)
      digest = mr::detail::digest_bytes(std::as_bytes(std::span(row).subspan(side * 300, side)), digest);
  }
  return digest;
}

std::uint64_t run(const std::string& row, const std::vector<bench::crop>& crops) {
  std::vector<mr::detail::jpeg_planes_request> requests;
  for (const auto& c : crops) requests.push_back(c.request());
  std::uint64_t digest = 0;
  if (row == "exact") digest = rendered(crops, {});
  else if (row == "fast") digest = rendered(crops, {.quality = mr::picture_quality::fast});
  else if (row == "planes") {
    mr::detail::jpeg_plane_decoder decoder;
    decoder.decode_each(requests, [&](std::size_t, const auto& result) { digest = digest_of(result, digest); });
  } else if (row == "progressive") {
    mr::detail::progressive_decoder decoder;
    for (const auto& r : requests) digest = digest_of(decoder.decode(r), digest);
  } else if (row == "region") {
    bench::turbo libjpeg;
    for (const auto& r : requests) libjpeg.region(r);
  } else if (row != "nothing") {
    std::fprintf(stderr, "unknown row %s\n", row.c_str());
    std::exit(2);
  }
  return digest;
}

}   // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string row = argv[1], from = argv[2];
  const auto count = static_cast<std::size_t>(std::strtoull(argv[3], nullptr, 10));
  const auto crops = from == "drawn" ? drawn_crops(count, row == "progressive") : bench::read_crops(from, count);
  if (crops.size() != count) return 3;
  if (row == "nothing") {
    std::size_t bytes = 0;
    for (const auto& c : crops) bytes += c.file.size();
    std::fprintf(stderr, "%zu images of %zu bytes on average\n", count, bytes / std::max<std::size_t>(count, 1));
  }
  std::printf("digest %016" PRIx64 "\n", run(row, crops));
}
