// Random images, crops, sizes and flips, and the expected result of their resize, in real numbers.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/resize/basic_plane_resizer.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include "../slow_pictures.hpp"

#include <array>
#include <cmath>
#include <memory>
#include <vector>

namespace mr = millrace;

namespace slow {

/// A JPEG's planes as libjpeg stores them, cut to a region, in memory that ends with the last sample.
class stored_planes {
 public:
  /// All of the image.
  explicit stored_planes(std::span<const std::byte> file) {
    jpeg_error_mgr messages{};
    jpeg_decompress_struct info{};
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    messages.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, 1);
    info.raw_data_out = 1;
    jpeg_start_decompress(&info);
    full_.components = info.num_components;
    full_.image_width = static_cast<int>(info.image_width);
    full_.image_height = static_cast<int>(info.image_height);
    full_.horizontal_sampling = info.comp_info[0].h_samp_factor;
    full_.vertical_sampling = info.comp_info[0].v_samp_factor;
    if (info.num_components == 1) full_.horizontal_sampling = full_.vertical_sampling = 1;
    std::array<std::vector<std::vector<std::uint8_t>>, 3> rows;
    const auto step = static_cast<JDIMENSION>(info.max_v_samp_factor * 8);
    while (info.output_scanline < info.output_height) {
      std::array<std::vector<JSAMPROW>, 3> pointers;
      JSAMPARRAY arrays[3];
      for (int c = 0; c < info.num_components; ++c) {
        auto& own = rows[static_cast<std::size_t>(c)];
        const std::size_t before = own.size(), more = static_cast<std::size_t>(info.comp_info[c].v_samp_factor) * 8;
        own.resize(before + more, std::vector<std::uint8_t>(info.comp_info[c].width_in_blocks * 8 + 64));
        for (std::size_t y = before; y < own.size(); ++y)
          pointers[static_cast<std::size_t>(c)].push_back(own[y].data());
        arrays[c] = pointers[static_cast<std::size_t>(c)].data();
      }
      jpeg_read_raw_data(&info, arrays, step);
    }
    for (int c = 0; c < info.num_components; ++c) {
      const auto width = static_cast<std::size_t>(info.comp_info[c].downsampled_width);
      const auto height = static_cast<std::size_t>(info.comp_info[c].downsampled_height);
      samples_[static_cast<std::size_t>(c)] = mr::tensor<std::uint8_t, 2>({height, width});
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          samples_[static_cast<std::size_t>(c)](y, x) = rows[static_cast<std::size_t>(c)][y][x];
    }
    jpeg_abort_decompress(&info);
    jpeg_destroy_decompress(&info);
  }

  const mr::detail::jpeg_planes& full() const { return full_; }

  /// The blocks that contain the box, each plane in its own heap block, with `gap_bytes` between rows, and nothing
  /// after the last sample. Valid until the next call.
  mr::detail::jpeg_planes region(const mr::crop_box& box, std::size_t gap_bytes = 0) {
    mr::detail::jpeg_planes cut = full_;
    const int across = 8 * full_.horizontal_sampling, down = 8 * full_.vertical_sampling;
    cut.left = static_cast<int>(box.left) / across * across;
    cut.top = static_cast<int>(box.top) / down * down;
    const int end = static_cast<int>(box.left + box.width);
    const int right = std::min((end + across - 1) / across * across, cut.image_width);
    const int bottom = std::min((static_cast<int>(box.top + box.height) + down - 1) / down * down, cut.image_height);
    for (int c = 0; c < full_.components; ++c) {
      const int h = c == 0 ? 1 : full_.horizontal_sampling, v = c == 0 ? 1 : full_.vertical_sampling;
      auto& view = cut.component[c];
      view.width = (right + h - 1) / h - cut.left / h;
      view.height = (bottom + v - 1) / v - cut.top / v;
      const auto width = static_cast<std::size_t>(view.width), height = static_cast<std::size_t>(view.height);
      view.stride_bytes = width + gap_bytes;
      auto& piece = cut_[static_cast<std::size_t>(c)];
      piece = std::make_unique<std::uint8_t[]>((height - 1) * view.stride_bytes + width);
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          piece[y * view.stride_bytes + x] = samples_[static_cast<std::size_t>(c)](
              static_cast<std::size_t>(cut.top / v) + y, static_cast<std::size_t>(cut.left / h) + x);
      view.data = piece.get();
    }
    return cut;
  }

 private:
  mr::detail::jpeg_planes full_;
  std::array<mr::tensor<std::uint8_t, 2>, 3> samples_;
  std::array<std::unique_ptr<std::uint8_t[]>, 3> cut_;
};

/// A box grown by the pixel on each side that chroma upsampling reads.
inline mr::crop_box with_margin(const mr::crop_box& box, std::size_t height, std::size_t width) {
  const std::size_t left = box.left == 0 ? 0 : box.left - 1, top = box.top == 0 ? 0 : box.top - 1;
  return {.left = left, .top = top, .width = std::min(box.left + box.width + 1, width) - left,
          .height = std::min(box.top + box.height + 1, height) - top};
}

inline constexpr mr::chroma_sampling samplings[] = {mr::chroma_sampling::yuv444, mr::chroma_sampling::yuv422,
                                                    mr::chroma_sampling::yuv440, mr::chroma_sampling::yuv420};

/// One image with its plan.
struct resize_case {
  std::vector<std::byte> file{};
  mr::crop_box box{};
  std::size_t height = 0, width = 0;         ///< of the image
  std::size_t rows = 0, columns = 0;         ///< of the result
  bool flipped = false;
  bool gray = false;
  mr::resize_filter filter = mr::resize_filter::bilinear;

  mr::detail::resize_plan plan() const {
    mr::detail::resize_plan p{.rows = mr::detail::plan_axis(static_cast<std::int64_t>(height)),
                              .columns = mr::detail::plan_axis(static_cast<std::int64_t>(width))};
    p.rows.crop(static_cast<std::int64_t>(box.top), static_cast<std::int64_t>(box.height));
    p.columns.crop(static_cast<std::int64_t>(box.left), static_cast<std::int64_t>(box.width));
    p.rows.resize(static_cast<std::int64_t>(rows));
    p.columns.resize(static_cast<std::int64_t>(columns));
    if (flipped) p.columns.flip();
    p.rows.filter = p.columns.filter = filter;
    return p;
  }
};

/// Case i of a series: all samplings and gray, noise, sharp edges, single pixels, strong scales in both directions.
inline resize_case random_case(std::uint64_t i) {
  mr::rng d({.seed = 21, .sample = i});
  const auto below = [&](std::int64_t n) { return static_cast<std::size_t>(d.between(1, n)); };
  resize_case c;
  c.height = below(i % 7 == 0 ? 400 : i % 5 == 0 ? 6 : 150);
  c.width = below(i % 11 == 0 ? 500 : i % 5 == 1 ? 6 : 150);
  c.gray = i % 9 == 8;
  auto pixels = photo(c.height, c.width, c.gray ? 1 : 3, i);
  if (i % 4 == 0)
    for (auto& v : pixels.span()) v = d.chance(0.5) ? 255 : 0;
  c.file = mr::encode_jpeg(pixels, {.quality = i % 3 == 0 ? 100 : 85, .sampling = samplings[i % 4]});
  c.box = {.width = below(static_cast<std::int64_t>(c.width)), .height = below(static_cast<std::int64_t>(c.height))};
  if (i % 6 == 0) c.box = {.width = c.width, .height = c.height};
  c.box.left = below(static_cast<std::int64_t>(c.width - c.box.width + 1)) - 1;
  c.box.top = below(static_cast<std::int64_t>(c.height - c.box.height + 1)) - 1;
  c.rows = below(i % 8 == 3 ? 150 : 60);
  c.columns = i % 4 == 1 ? 32 * below(3) : below(i % 8 == 5 ? 150 : 60);
  if (i % 10 == 7) c.rows = below(4), c.columns = below(4);
  c.flipped = d.chance(0.5);
  return c;
}

/// The case's u8 pixels, rendered into the middle of guarded memory.
template <class Resizer>
mr::image render(Resizer& r, const resize_case& c, stored_planes& planes, bool fast, std::size_t gap_bytes = 0) {
  constexpr std::size_t guard = 64;
  const std::size_t bytes = c.rows * c.columns * 3;
  std::vector<std::uint8_t> memory(bytes + 2 * guard + 32, 0x5a);
  auto* data = memory.data() + guard + (32 - reinterpret_cast<std::uintptr_t>(memory.data()) % 32) % 32;
  r.start({.plan = c.plan(), .fast = fast, .target = {.data = data, .cold = c.rows % 2 == 0}});
  const auto box = mr::detail::resize_source_box(c.plan(), {.width = c.width, .height = c.height});
  const mr::crop_box needed{.left = box.left, .top = box.top, .width = box.right - box.left,
                            .height = box.bottom - box.top};
  r.render(planes.region(needed, gap_bytes));
  for (auto* p = memory.data(); p < memory.data() + memory.size(); ++p)
    if ((p < data || p >= data + bytes) && *p != 0x5a) return mr::image({1, 1, 1});   // no result has this shape
  mr::image result({c.rows, c.columns, 3});
  std::copy(data, data + bytes, result.data());
  return result;
}

/// Adds `more`, one of `count` in all.
inline void gather(difference& sum, const difference& more, std::size_t count) {
  sum.max = std::max(sum.max, more.max);
  sum.mean += more.mean / static_cast<double>(count);
}

inline real_image resized(const real_image& from, const resize_case& c) {
  return c.filter == mr::resize_filter::bicubic ? resize_bicubic(from, c.rows, c.columns)
                                                        : resize(from, c.rows, c.columns);
}

inline real_image decoded_then_resized(const resize_case& c) {
  real_image full = real(decode(c.file));
  auto result = resized(crop(full, c.box), c);
  return c.flipped ? flip(result) : result;
}

/// Upsampled in real numbers, one axis at a time as libjpeg does (3/4, 1/4, the last sample repeated).
inline real_image upsampled_rows(const real_image& from, std::size_t height) {
  real_image result({height, from.shape()[1], from.shape()[2]});
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t own = y / 2, last = from.shape()[0] - 1;
    const std::size_t other = y % 2 == 1 ? std::min(own + 1, last) : own == 0 ? 0 : own - 1;
    for (std::size_t x = 0; x < from.shape()[1]; ++x)
      for (std::size_t c = 0; c < from.shape()[2]; ++c)
        result(y, x, c) = 0.75 * from(own, x, c) + 0.25 * from(other, x, c);
  }
  return result;
}

/// The fast way in real numbers: planes at full size, cropped, resized, flipped, converted, clamped.
inline real_image planes_then_colors(const resize_case& c, const mr::detail::jpeg_planes& planes) {
  real_image result({c.rows, c.columns, 3});
  real_image ycc[3];
  for (int k = 0; k < 3; ++k) {
    const auto& v = planes.component[k < planes.components ? k : 0];
    real_image p({static_cast<std::size_t>(v.height), static_cast<std::size_t>(v.width), 1});
    for (std::size_t y = 0; y < p.shape()[0]; ++y)
      for (std::size_t x = 0; x < p.shape()[1]; ++x) p(y, x, 0) = v.data[y * v.stride_bytes + x];
    if (k > 0 && planes.vertical_sampling == 2) p = upsampled_rows(p, c.height);
    if (k > 0 && planes.horizontal_sampling == 2) p = transpose(upsampled_rows(transpose(p), c.width));
    p = resized(crop(p, c.box), c);
    ycc[k] = c.flipped ? flip(p) : p;
  }
  for (std::size_t y = 0; y < c.rows; ++y)
    for (std::size_t x = 0; x < c.columns; ++x) {
      const double luma = ycc[0](y, x, 0), u = ycc[1](y, x, 0) - 128, v = ycc[2](y, x, 0) - 128;
      const double rgb[3] = {luma + 1.402 * v, luma - 0.344136 * u - 0.714136 * v, luma + 1.772 * u};
      for (std::size_t k = 0; k < 3; ++k)
        result(y, x, k) = planes.components == 1 ? luma : std::clamp(rgb[k], 0.0, 255.0);
    }
  return result;
}

template <class Resizer>
difference check_exact(Resizer& r, std::uint64_t count) {
  difference sum;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto c = random_case(i);
    stored_planes planes(c.file);
    gather(sum, compare(render(r, c, planes, false, i % 5 * 20), decoded_then_resized(c)), count);
  }
  return sum;
}

template <class Resizer>
difference check_fast(Resizer& r, std::uint64_t count) {
  difference sum;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto c = random_case(i);
    stored_planes planes(c.file);
    const auto pixels = render(r, c, planes, true, i % 5 * 20);
    gather(sum, compare(pixels, planes_then_colors(c, planes.region({.width = c.width, .height = c.height}))), count);
  }
  return sum;
}

}  // namespace slow
