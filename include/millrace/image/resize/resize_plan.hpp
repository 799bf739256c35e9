// Describes the output of a resizer: the plans of both axes, in pixels of the source.
//
//   mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(375), .columns = mr::detail::plan_axis(500)};
//   plan.columns.crop(100, 280), plan.columns.resize(224), plan.columns.flip();
//
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/image/values/pixel_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns how many pixels a filter reaches to each side.
constexpr std::int64_t reach_of(resize_filter filter) noexcept { return filter == resize_filter::bicubic ? 2 : 1; }

// Describes one axis of an image plan. The outputs of an axis are the pixels of the resized axis. The plan states the
// outputs that are rendered, and the box of the source that is resampled.
//
//   mr::detail::plan_axis x(500);          // outputs 0..499 are source pixels 0..499
//   x.crop(100, 280);              // before a resize: selects a smaller box of the source
//   x.resize(224);                 // 224 outputs over the box [100, 380)
//   x.crop(0, 112);                // after a resize: the first 112 of 224 outputs; taps may still be beyond the crop
//   x.flip();
//
// Units: source pixels. The edges of the box are fractions: begin / denominator and (begin + length) / denominator.
// Taps, the source pixels of an output, stay inside [clip_begin, clip_end). On a padded axis, `before` outputs of
// padding precede the rendered outputs, and `after` outputs of padding follow the rendered outputs. A crop of a padded
// axis may hide rendered outputs on one side. Then `before` or `after` is negative: minus the number of hidden outputs.
// All numbers are integers, so plans are identical with every compiler.
// Errors: resize() throws setup_error. Threads: not synchronized.

/// One axis of a plan: a box of the source, and its rendered outputs.
struct plan_axis {
  /// The longest side of a JPEG, and the largest number of outputs.
  static constexpr std::int64_t max_length = 65'535;

  std::int64_t begin = 0, length = 0, denominator = 1;   ///< the box
  std::int64_t clip_begin = 0, clip_end = 0;             ///< source pixels that taps may read
  std::int64_t target = 0;                               ///< outputs over the full box
  std::int64_t first = 0, count = 0;                     ///< the rendered outputs, in source order
  std::int64_t before = 0, after = 0;                    ///< outputs of padding, in source order
  bool flipped = false;                                  ///< whether the outputs are stored last to first
  resize_filter filter = resize_filter::bilinear;

  plan_axis() = default;
  /// Plans all pixels of a side of `source_length` pixels, without a resize.
  explicit plan_axis(std::int64_t source_length)
      : length(source_length), clip_end(source_length), target(source_length), count(source_length) {}

  /// Reverses the order of the outputs.
  void flip() noexcept { flipped = !flipped; }

  /// Returns the number of outputs, including padding.
  std::int64_t extent() const noexcept { return before + count + after; }
  bool is_padded() const noexcept { return before != 0 || after != 0; }

  /// Retains `size` of the current outputs, from `offset` on. `offset` counts in display order, the order after any
  /// flip.
  void crop(std::int64_t offset, std::int64_t size) noexcept {
    const std::int64_t skipped = flipped ? extent() - offset - size : offset;   // in source order
    if (is_padded()) {
      after -= extent() - skipped - size;
      before -= skipped;
      if (before > 0 || after > 0) return;
      first -= std::exchange(before, 0);
      after = 0;
    } else {
      first += skipped;
    }
    count = size;
    const bool is_source = denominator == 1 && target == length;
    if (!is_source) return;
    begin += first;
    length = target = size;
    clip_begin = std::max(clip_begin, begin);   // an earlier crop may have a narrower range
    clip_end = std::min(clip_end, begin + length);
    first = 0;
  }

  /// Adds outputs of padding, in display order.
  void pad(std::int64_t at_begin, std::int64_t at_end) noexcept {
    before += flipped ? at_end : at_begin;
    after += flipped ? at_begin : at_end;
  }

  /// Removes the hidden outputs of a padded axis from the plan. Returns false if only padding is left.
  bool remove_hidden() noexcept {
    const std::int64_t padded[2] = {std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0)};
    const std::int64_t skipped = padded[0] - before, shown = extent() - padded[0] - padded[1];
    if (shown < 1) return false;
    before = after = 0;
    const bool direction = std::exchange(flipped, false);
    crop(skipped, shown);
    flipped = direction;
    before = padded[0];
    after = padded[1];
    return true;
  }

  /// Plans a resize of the current outputs to `outputs` outputs. Consecutive resizes become one resize from the source.
  /// A padded axis must not have hidden outputs; see remove_hidden(). Throws setup_error if crops and resizes alternate
  /// too often for an exact plan.
  void resize(std::int64_t outputs) {
    const std::int64_t current = extent(), from = first - before;
    if (from != 0 || current != target) {
      const std::int64_t image_begin = begin * target + first * length, image_end = image_begin + count * length;
      begin = begin * target + from * length;
      length *= current;
      denominator *= target;
      clip_begin = std::max(clip_begin, image_begin / denominator);
      clip_end = std::min(clip_end, (image_end + denominator - 1) / denominator);
      const std::int64_t common = std::gcd(std::gcd(begin, length), denominator);
      begin /= common;
      length /= common;
      denominator /= common;
      constexpr std::int64_t largest_denominator = std::int64_t{1} << 20;
      if (denominator > largest_denominator)
        throw setup_error("an image plan has too many alternating crops and resizes to be computed exactly",
                          "Combine the crops and resizes into one crop and one resize");
    }
    target = outputs;
    // The outputs whose centers are inside the image. A center at the image's edge is in the padding.
    std::int64_t begin_output = (2 * outputs * before + current) / (2 * current);
    std::int64_t end_output = (2 * outputs * (before + count) + current - 1) / (2 * current);
    if (begin_output >= end_output) {   // an image that is much smaller than its padding becomes one output
      begin_output = std::min(outputs - 1, outputs * (2 * before + count) / (2 * current));
      end_output = begin_output + 1;
    }
    first = before = begin_output;
    count = end_output - begin_output;
    after = outputs - end_output;
  }

  /// Returns the plan for the same outputs from a source that was decoded at `eighths` / 8 of its size.
  plan_axis scaled(std::int64_t eighths) const noexcept {
    plan_axis shrunk = *this;
    shrunk.begin *= eighths;
    shrunk.length *= eighths;
    shrunk.denominator *= 8;
    const std::int64_t common = std::gcd(std::gcd(shrunk.begin, shrunk.length), shrunk.denominator);
    shrunk.begin /= common;
    shrunk.length /= common;
    shrunk.denominator /= common;
    shrunk.clip_begin = clip_begin * eighths / 8;
    shrunk.clip_end = (clip_end * eighths + 7) / 8;
    return shrunk;
  }
};

/// Returns how far the filter of an axis reaches from the center of an output, as an integer. In the unit of the
/// result, half a source pixel has the length `step`.
constexpr std::int64_t reach_of(const plan_axis& axis, std::int64_t step) noexcept {
  const bool antialiased = axis.filter != resize_filter::opencv_linear;
  return 2 * reach_of(axis.filter) * (antialiased ? std::max(axis.length, step) : step);
}

/// The plans of both axes of the source, and whether the source's rows become the columns of the result.
struct resize_plan {
  plan_axis rows{};
  plan_axis columns{};
  bool transposed = false;
  padding_mode padding = padding_mode::constant;   ///< the kind of pixels in the padding
};

// Computes the range of source pixels that a plan uses, without the tables of weights.
//
//   const mr::detail::plane_box box = mr::detail::resize_source_box(plan, {.width = 500, .height = 375});
//   decode(box);                         // rows box.top to box.bottom, columns box.left to box.right
//   const mr::detail::source_span s = mr::detail::source_span_of(plan.columns);   // the pixels that build() uses
//
// The box includes one extra pixel on each side for the upsampling of chroma. Units: pixels of the stored image.
// Errors: none. Threads: pure functions; any thread.

/// Pixels [begin, end) of one axis.
struct source_span {
  std::size_t begin = 0, end = 0;
};

/// Rows [top, bottom) and columns [left, right) of the stored image.
struct plane_box {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
};

struct plane_size {
  std::size_t width = 0, height = 0;
};

/// Returns the pixels that have a weight for any rendered output of the axis.
constexpr source_span source_span_of(const plan_axis& axis) noexcept {
  const auto floor_of = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const std::int64_t step = axis.denominator * axis.target;   // length of half a source pixel
  const std::int64_t reach = reach_of(axis, step);
  const auto center = [&](std::int64_t o) { return (2 * o + 1) * axis.length + 2 * axis.begin * axis.target; };
  // Pixel i has a weight for an output if (2 i + 1) * step is less than `reach` away from the output's center.
  const std::int64_t begin = floor_of(center(axis.first) - reach - step, 2 * step) + 1;
  const std::int64_t last = axis.first + axis.count - 1;
  const std::int64_t end = -floor_of(step - center(last) - reach, 2 * step);
  return {.begin = static_cast<std::size_t>(std::clamp(begin, axis.clip_begin, axis.clip_end - 1)),
          .end = static_cast<std::size_t>(std::clamp(end, axis.clip_begin + 1, axis.clip_end))};
}

/// Returns the pixels to decode for a plan, with the extra pixel on each side, clipped to the image.
constexpr plane_box resize_source_box(const resize_plan& plan, const plane_size& image) noexcept {
  const source_span across = source_span_of(plan.columns), down = source_span_of(plan.rows);
  const auto before = [](std::size_t x) { return x == 0 ? x : x - 1; };
  return {.left = before(across.begin),
          .top = before(down.begin),
          .right = std::min(across.end + 1, image.width),
          .bottom = std::min(down.end + 1, image.height)};
}

}}}   // namespace millrace::detail
