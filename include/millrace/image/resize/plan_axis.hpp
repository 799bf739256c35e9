// Describes one axis of a picture's plan: which outputs are wanted of a resampling of which box of the source.
//
//   mr::detail::plan_axis x(500);          // outputs 0..499 are source pixels 0..499
//   x.crop(100, 280);              // exact: a smaller box of the source
//   x.resize(224);                 // 224 outputs over the box [100, 380)
//   x.crop(0, 112);                // after a resize: the first 112 of those 224 outputs; taps may still reach beyond
//   x.flip();
//
// Units: source pixels. The box has rational edges, begin / denominator and (begin + length) / denominator.
// Output o of `target` outputs begins at (begin + o * length / target) / denominator. Taps stay inside
// [clip_begin, clip_end). This range is the picture as it was when the resize was asked for.
// All numbers are integers, so every compiler plans the same.
// Errors: resize() throws setup_error. Threads: a value.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// One axis of a plan: a box of the source, and the outputs wanted of it.
struct plan_axis {
  /// The longest side of a JPEG, and the largest number of outputs.
  static constexpr std::int64_t max_length = 65'535;

  std::int64_t begin = 0, length = 0, denominator = 1;   ///< the box
  std::int64_t clip_begin = 0, clip_end = 0;             ///< source pixels that taps may touch
  std::int64_t target = 0;                               ///< outputs over the whole box
  std::int64_t first = 0, count = 0;                     ///< the outputs that are wanted, in source order
  bool flipped = false;                                  ///< the outputs are stored last to first

  plan_axis() = default;
  /// Plans all pixels of a side of `source_length` pixels, as they are.
  explicit plan_axis(std::int64_t source_length)
      : length(source_length), clip_end(source_length), target(source_length), count(source_length) {}

  /// Reverses the order of the outputs.
  void flip() noexcept { flipped = !flipped; }

  /// Keeps `size` of the current outputs, from `offset` on, in the order in which they are seen (after a flip).
  void crop(std::int64_t offset, std::int64_t size) noexcept {
    first += flipped ? count - offset - size : offset;
    count = size;
    const bool is_source = denominator == 1 && target == length;
    if (!is_source) return;
    clip_begin = begin += first;
    length = target = size;
    clip_end = begin + length;
    first = 0;
  }

  /// Plans `outputs` outputs over the current ones. A resize of a resize is one resize from the source.
  /// Throws setup_error if the picture was cropped and resized so often that the plan would not be exact.
  void resize(std::int64_t outputs) {
    if (first != 0 || count != target) {
      begin = begin * target + first * length;
      length *= count;
      denominator *= target;
      const std::int64_t common = std::gcd(std::gcd(begin, length), denominator);
      begin /= common;
      length /= common;
      denominator /= common;
      clip_begin = std::max(clip_begin, begin / denominator);
      clip_end = std::min(clip_end, (begin + length + denominator - 1) / denominator);
      constexpr std::int64_t largest_denominator = std::int64_t{1} << 20;
      if (denominator > largest_denominator)
        throw setup_error("a picture was cropped and resized so often that its plan is no longer exact",
                          "Call pixels() in between, or crop and resize once", {.stage = "jpeg"});
    }
    first = 0;
    target = count = outputs;
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

}}}  // namespace millrace::detail
