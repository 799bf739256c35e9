// Shears or translates an image along one axis. The source of a pixel is a point of the old image, usually between two
// adjacent pixels of one row or column.
//
//   mr::detail::axis_warp<mr::detail::portable_warping> w;    // reused for all images
//   if (!w.run(from, pixels, mr::detail::shear_x_of(0.3), mr::detail::warp_filter::bicubic, fill)) go_the_plain_way();
//
// In a horizontal shear, all pixels of a row have the same distance from their sources. In a vertical shear, all pixels
// of a column have the same distance from their sources. The distance is computed once per row or column. The bytes are
// computed in float. If rounding might change a byte, the general kernels (warp_kernels.hpp) recompute it as Pillow
// does.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/color/rgb_pixels.hpp>
#include <millrace/image/warp/affine_map.hpp>
#include <millrace/image/warp/axis_taps.hpp>
#include <millrace/image/warp/warp_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Kernels>
class axis_warp {
 public:
  /// Computes the pixels. Returns false, without changing pixels, in three cases: the map is not along one axis, a side
  /// exceeds 2^20 pixels, or a vertical distance is too close to an integer. At the address of every pixel of `from`,
  /// at least ten bytes must be readable.
  bool run(const warp_source& from, const rgb_pixels& p, const affine_map& map, warp_filter filter,
           const rgb_color& fill) {
    if (map.xx != 1 || map.yy != 1 || p.width > highest_count || p.height > highest_count) return false;
    cubic_ = filter == warp_filter::bicubic;
    if (map.yx == 0 && map.y0 == 0) return run_along_rows(from, p, map, fill), true;
    return map.xy == 0 && map.x0 == 0 && run_down_columns(from, p, map, fill);
  }

 private:
  using taps = typename Kernels::along_axis;
  static constexpr std::size_t highest_count = 1U << 20, slack = 16;

  /// A distance in pixels: the integer part and the fraction.
  struct split_distance {
    explicit split_distance(double distance) noexcept
        : pixels(std::abs(distance) < highest_count ? static_cast<std::ptrdiff_t>(std::floor(distance)) : 0),
          rest(distance - static_cast<double>(pixels)) {}

    /// Returns whether the distance has the same integer part for every possible rounding of Pillow's sums.
    bool is_steady() const noexcept { return rest > 1e-6 && rest < 1 - 1e-6; }

    /// Returns whether all numbers computed from this distance are exact in float.
    bool is_short(bool cubic) const noexcept {
      const double scaled = rest * (cubic ? 16 : 32'768);
      return scaled == std::floor(scaled);
    }

    std::ptrdiff_t pixels;
    double rest;
  };

  void set_weights(std::size_t begin, std::size_t end, double d) noexcept {
    for (std::size_t i = begin; i < end; ++i) {
      weights_[0][i] = static_cast<float>(-d + 2 * d * d - d * d * d);
      weights_[1][i] = static_cast<float>(cubic_ ? d + d * d - d * d * d : d);
      weights_[2][i] = static_cast<float>(d * d * d - d * d);
    }
  }

  void compute_exactly(const warp_line& line) const noexcept {
    cubic_ ? Kernels::bicubic(line) : Kernels::bilinear(line);
  }

  /// Computes the pixels of the line from the numbers in `row`.
  void mix(warp_line line, axis_tap_row row) noexcept {
    const std::size_t skipped = row.weight_mask < axis_tap_row::fewest_weights ? 0 : 3 * line.begin;
    row.before_weights = weights_[0].data() + skipped;
    row.next_weights = weights_[1].data() + skipped;
    row.last_weights = weights_[2].data() + skipped;
    row.count = 3 * (line.end - line.begin);
    row.to = line.to + 3 * line.begin;
    if (doubtful_.size() < row.count) doubtful_.resize(row.count);
    std::uint32_t* const doubtful = doubtful_.data();
    const auto kernel = cubic_ ? taps::template mix<true> : taps::template mix<false>;
    const std::size_t count = kernel(row, doubtful), first = line.begin;
    for (std::size_t i = 0; i < count;) {   // one call for adjacent pixels
      line.begin = first + doubtful[i] / 3;
      line.end = line.begin + 1;
      for (; i < count && first + doubtful[i] / 3 <= line.end; ++i) line.end = first + doubtful[i] / 3 + 1;
      compute_exactly(line);
    }
  }

  /// For each row, calls work(line, y) with a line of the pixels that have sources inside the image. Fills all other
  /// pixels.
  template <class Work>
  static void for_each_line(const warp_source& from, const rgb_pixels& p, const affine_map& map, const rgb_color& fill,
                            const Work& work) {
    for (std::size_t y = 0; y < p.height; ++y) {
      warp_line line{.source = from,
                     .map = map,
                     .middle = static_cast<double>(y) + 0.5,
                     .end = p.width,
                     .to = p.row(y),
                     .fill = fill};
      keep_inside_source(line);
      fill_pixels(line.to, line.begin, fill);
      fill_pixels(line.to + 3 * line.end, p.width - line.end, fill);
      if (line.begin < line.end) work(line, static_cast<std::ptrdiff_t>(y));
    }
  }

  void run_along_rows(const warp_source& from, const rgb_pixels& p, const affine_map& map, const rgb_color& fill) {
    constexpr std::ptrdiff_t margin = 2;   // pixels beyond the ends of a row
    for (auto& weights : weights_) weights.resize(std::max(weights.size(), axis_tap_row::fewest_weights));
    const std::size_t numbers = 3 * (p.width + 2 * margin) + slack;
    if (numbers_.size() < numbers) numbers_.resize(numbers);
    double last_rest = -1;
    for_each_line(from, p, map, fill, [&](const warp_line& line, std::ptrdiff_t y) {
      const split_distance distance(map.x(0.5, line.middle) - 0.5);
      if (!distance.is_steady()) return compute_exactly(line);
      if (distance.rest != last_rest) set_weights(0, axis_tap_row::fewest_weights, last_rest = distance.rest);
      const auto number = [&](std::ptrdiff_t column) { return numbers_.data() + 3 * (column + margin); };
      const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(line.begin) + distance.pixels;
      const std::ptrdiff_t end = static_cast<std::ptrdiff_t>(line.end) + distance.pixels;
      const std::ptrdiff_t from_column = std::max<std::ptrdiff_t>(first - 1, 0);
      const std::ptrdiff_t to_column = std::min(end + 2, from.width);
      taps::widen(from.at(from_column, y), static_cast<std::size_t>(3 * (to_column - from_column)),
                  number(from_column));
      for (std::ptrdiff_t k = 0; k < 3 * margin; ++k) {
        number(-margin)[k] = from.at(0, y)[k % 3];
        number(from.width)[k] = from.at(from.width - 1, y)[k % 3];
      }
      mix(line, {.before = number(first - 1),
                 .own = number(first),
                 .next = number(first + 1),
                 .last = number(first + 2),
                 .weight_mask = axis_tap_row::fewest_weights - 1,
                 .error = distance.is_short(cubic_) ? -1 : axis_tap_error});
    });
  }

  /// Adjacent columns whose sources are the same number of rows away.
  struct run_of_columns {
    std::size_t begin, count;
    std::ptrdiff_t down;
  };

  /// Computes the runs and their weights. Returns false if a distance is too close to an integer.
  bool find_runs(const rgb_pixels& p, const affine_map& map) {
    all_short_ = true;
    for (auto& weights : weights_) weights.resize(std::max(weights.size(), p.row_bytes() + slack));
    runs_.clear();
    for (std::size_t x = 0; x < p.width; ++x) {
      const split_distance distance(map.y(static_cast<double>(x) + 0.5, 0.5) - 0.5);
      if (!distance.is_steady()) return false;
      all_short_ = all_short_ && distance.is_short(cubic_);
      set_weights(3 * x, 3 * x + 3, distance.rest);
      if (!runs_.empty() && runs_.back().down == distance.pixels) ++runs_.back().count;
      else runs_.push_back({.begin = x, .count = 1, .down = distance.pixels});
    }
    return true;
  }

  /// Shears or translates along columns. In numbers_, each column is already shifted by the integer part of its
  /// distance. Therefore the neighbors of a byte are at the same index in the rows above and below.
  bool run_down_columns(const warp_source& from, const rgb_pixels& p, const affine_map& map, const rgb_color& fill) {
    if (!find_runs(p, map)) return false;
    const auto stride = static_cast<std::ptrdiff_t>(p.row_bytes() + slack);
    if (std::ssize(numbers_) < 4 * stride) numbers_.resize(static_cast<std::size_t>(4 * stride));
    const auto numbers_of = [&](std::ptrdiff_t y) { return numbers_.data() + (y & 3) * stride; };
    std::ptrdiff_t next_row = -1;   // rows before next_row are converted or not needed
    for_each_line(from, p, map, fill, [&](const warp_line& line, std::ptrdiff_t y) {
      for (next_row = std::max(next_row, y - 1); next_row <= y + 2; ++next_row)
        for (const run_of_columns& run : runs_)
          taps::widen(from.at(static_cast<std::ptrdiff_t>(run.begin), next_row + run.down), 3 * run.count,
                      numbers_of(next_row) + 3 * run.begin);
      const auto number = [&](std::ptrdiff_t row) { return numbers_of(row) + 3 * line.begin; };
      mix(line, {.before = number(y - 1),
                 .own = number(y),
                 .next = number(y + 1),
                 .last = number(y + 2),
                 .error = all_short_ ? -1 : axis_tap_error});
    });
    return true;
  }

  bool cubic_ = false, all_short_ = false;
  std::vector<float> weights_[3], numbers_;
  std::vector<std::uint32_t> doubtful_;
  std::vector<run_of_columns> runs_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
