// Runs one operation on pixels several times, so that instructions.sh can count the instructions:
//
//   count_pixels ROW 20                               # 20 times; count_pixels rows: prints the names of the rows
//
// Photometric rows change 224 x 224 RGB pixels. normalize_TYPE_LAYOUT normalizes that many, checksums read as many
// bytes, and paeth reverses that PNG filter for them. "nothing" only creates the pixels.
// Prints a digest, which is the same on every machine.
#include <millrace/base/crc32c.hpp>
#include <millrace/base/digest.hpp>
#include <millrace/device/normalize.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/png/adler.hpp>
#include <millrace/image/png/unfilter.hpp>

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
using mr::photometric_plan;
using pixel_row = std::vector<std::uint8_t>;

constexpr std::size_t side = 224, row_bytes = side * side * 3, sources = 4;
constexpr mr::picture_size size{.width = side, .height = side};
constexpr mr::warp_options bilinear{.filter = mr::interpolation::bilinear};
constexpr mr::warp_options bicubic{.filter = mr::interpolation::bicubic};

struct photometric_row {
  const char* name;
  void (*plan)(photometric_plan&, mr::rng&);
};

const photometric_row photometric_rows[] = {
    {"color_jitter",
     [](photometric_plan& p, mr::rng& r) {
       p.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, r);
     }},
    {"rand_augment", [](photometric_plan& p, mr::rng& r) { p.rand_augment(size, r); }},
    {"trivial_augment", [](photometric_plan& p, mr::rng& r) { p.trivial_augment(size, r); }},
    {"auto_augment", [](photometric_plan& p, mr::rng& r) { p.auto_augment(size, r); }},
    {"aug_mix", [](photometric_plan& p, mr::rng& r) { p.aug_mix(size, r); }},
    {"gaussian_blur", [](photometric_plan& p, mr::rng& r) { p.gaussian_blur(9, r.uniform(0.1, 2)); }},
    {"pillow_blur", [](photometric_plan& p, mr::rng& r) { p.pillow_blur(r.uniform(0.1, 4)); }},
    {"rotate_bilinear", [](photometric_plan& p, mr::rng& r) { p.rotate(r.uniform(-40, 40), bilinear); }},
    {"rotate_bicubic", [](photometric_plan& p, mr::rng& r) { p.rotate(r.uniform(-40, 40), bicubic); }},
    {"shear_bilinear", [](photometric_plan& p, mr::rng& r) { p.shear_x(r.uniform(-0.3, 0.3), bilinear); }},
    {"shear_bicubic", [](photometric_plan& p, mr::rng& r) { p.shear_y(r.uniform(-0.3, 0.3), bicubic); }},
    {"hue", [](photometric_plan& p, mr::rng& r) { p.hue(r.uniform(-0.1, 0.1)); }},
    {"sharpness", [](photometric_plan& p, mr::rng& r) { p.sharpness(r.uniform(0, 2)); }},
    {"equalize", [](photometric_plan& p, mr::rng&) { p.equalize(); }},
    {"autocontrast", [](photometric_plan& p, mr::rng&) { p.autocontrast(); }},
};

/// Half of the rows are noise, half are smooth.
pixel_row drawn_row(std::uint64_t number) {
  mr::rng random({.seed = 5, .sample = number});
  pixel_row row(row_bytes);
  for (auto& byte : row) byte = static_cast<std::uint8_t>(random.below(256));
  if (number % 2 == 0)
    for (std::size_t i = 3; i < row.size(); ++i) row[i] = static_cast<std::uint8_t>((row[i] + 7 * row[i - 3]) / 8);
  return row;
}

std::uint64_t digest_of(std::span<const std::uint8_t> row, std::uint64_t before = 0) {
  return mr::detail::digest_bytes(std::as_bytes(row), before);
}

using rows = std::array<pixel_row, sources>;

std::uint64_t photometric(const photometric_row& kind, const rows& from, std::size_t times) {
  mr::scratch memory;
  std::uint64_t digest = 0;
  for (std::size_t t = 0; t < times; ++t) {
    mr::rng random({.seed = 4, .sample = t});
    photometric_plan plan;
    kind.plan(plan, random);
    pixel_row row = from[t % sources];
    plan.run(row, side, side, memory);
    digest = digest_of(std::span(row).subspan(row_bytes / 2, 300), digest);
  }
  return digest;
}

template <class T>
std::uint64_t normalized(const rows& from, std::size_t times, mr::image_layout layout) {
  std::vector<T> numbers(row_bytes);
  const bool planar = layout == mr::image_layout::nchw;
  const std::array<std::size_t, 4> shape{1, planar ? 3 : side, side, planar ? side : 3};
  for (std::size_t t = 0; t < times; ++t)
    mr::normalize(mr::tensor_view<const std::uint8_t, 4>{.data = from[t % sources].data(), .shape = {1, side, side, 3}},
                  mr::tensor_view<T, 4>{.data = numbers.data(), .shape = shape},
                  {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}, .layout = layout});
  return mr::detail::digest_bytes(std::as_bytes(std::span(numbers).subspan(row_bytes / 2, 300)));
}

/// Four rows of pixels at once, as the decoder does.
std::uint64_t unfiltered(const rows& from, std::size_t times) {
  constexpr std::size_t count = mr::detail::unfilter::max_rows, bytes = side * 3;
  constexpr std::size_t stride = bytes + mr::detail::unfilter::slack_bytes;
  static_assert(side % count == 0);
  const mr::detail::unfilter undo(3);
  pixel_row filtered(row_bytes + stride), to((side + 1) * stride);
  std::uint64_t digest = 0;
  for (std::size_t t = 0; t < times; ++t) {
    std::copy(from[t % sources].begin(), from[t % sources].end(), filtered.begin());
    std::fill_n(to.begin(), bytes, std::uint8_t{0});
    for (std::size_t y = 0; y < side; y += count) {
      std::array<mr::detail::filtered_row, count> group;
      for (std::size_t k = 0; k < count; ++k)
        group[k] = {.from = filtered.data() + (y + k) * bytes,
                    .above = to.data() + (y + k) * stride,
                    .to = to.data() + (y + k + 1) * stride,
                    .bytes = bytes};
      undo.paeth_rows(group);
    }
    digest = digest_of(std::span(to).subspan(side / 2 * stride, bytes), digest);
  }
  return digest;
}

template <class Checksum>
std::uint64_t summed(const rows& from, std::size_t times, const Checksum& checksum) {
  std::uint64_t sum = 0;
  for (std::size_t t = 0; t < times; ++t) sum = sum * 31 + checksum(from[t % sources]);
  return sum;
}

struct other_row {
  const char* name;
  std::uint64_t (*run)(const rows&, std::size_t times);
};

const other_row other_rows[] = {
    {"normalize_f32_nhwc",
     [](const rows& r, std::size_t n) { return normalized<float>(r, n, mr::image_layout::nhwc); }},
    {"normalize_f32_nchw",
     [](const rows& r, std::size_t n) { return normalized<float>(r, n, mr::image_layout::nchw); }},
    {"normalize_f16_nhwc",
     [](const rows& r, std::size_t n) { return normalized<mr::f16>(r, n, mr::image_layout::nhwc); }},
    {"normalize_f16_nchw",
     [](const rows& r, std::size_t n) { return normalized<mr::f16>(r, n, mr::image_layout::nchw); }},
    {"normalize_bf16_nchw",
     [](const rows& r, std::size_t n) { return normalized<mr::bf16>(r, n, mr::image_layout::nchw); }},
    {"crc32c",
     [](const rows& r, std::size_t n) {
       return summed(r, n, [](const pixel_row& p) { return mr::crc32c(std::as_bytes(std::span(p))); });
     }},
    {"crc32",
     [](const rows& r, std::size_t n) {
       return summed(r, n, [](const pixel_row& p) { return mr::detail::crc32(std::as_bytes(std::span(p))); });
     }},
    {"adler", [](const rows& r,
                 std::size_t n) { return summed(r, n, [](const pixel_row& p) { return mr::detail::adler(p); }); }},
    {"paeth", unfiltered},
    {"nothing", [](const rows&, std::size_t) { return std::uint64_t{0}; }},
};

}   // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "rows";
  if (name == "rows") {
    for (const auto& row : photometric_rows) std::printf("%s\n", row.name);
    for (const auto& row : other_rows) std::printf("%s\n", row.name);
    return 0;
  }
  const std::size_t times = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  rows from;
  for (std::size_t i = 0; i < sources; ++i) from[i] = drawn_row(i);
  for (const auto& row : photometric_rows)
    if (name == row.name) return std::printf("digest %016" PRIx64 "\n", photometric(row, from, times)) < 0;
  for (const auto& row : other_rows)
    if (name == row.name) return std::printf("digest %016" PRIx64 "\n", row.run(from, times)) < 0;
  std::fprintf(stderr, "unknown row %s\n", name.c_str());
  return 2;
}
