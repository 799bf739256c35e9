// Computes the weights of a resize along one axis, in integers. A tap is a source pixel with its weight.
//
//   mr::detail::tap_table t;
//   t.build(axis);                         // reuses its memory
//   t.first(i), t.count(i), t.weights(i);  // output i (in source order) = sum weights[k] * source[first + k] >> 14
//
// The bilinear and bicubic filters are those of Pillow and torchvision ("antialias"). The weights of an output sum to
// exactly 2^14. A bicubic weight may be negative or above 2^14, but never above 1.25 * 2^14. All numbers are integers,
// so the table is identical with every compiler and flag.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Computes the weights of a bicubic resize: the cubic function of Keys, with a = -0.5, as in Pillow. Uses only
// integers. A resize to the same size changes nothing.
// Source: R. G. Keys, Cubic Convolution Interpolation for Digital Image Processing, IEEE Transactions on Acoustics,
// Speech and Signal Processing, 1981.

class cubic_kernel {
 public:
  /// Builds the kernel for distances in units of 1 / `pixel` pixels; 1 <= pixel < 2^39.
  explicit constexpr cubic_kernel(std::int64_t pixel) noexcept
      : shift_(40 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(pixel)))),
        reciprocal_(static_cast<std::uint64_t>((wide{1} << 102) / (static_cast<std::uint64_t>(pixel) << shift_)) + 1) {}

  /// Returns the weight; 2^31 represents 1. `distance` is at least 0 and below two pixels.
  constexpr std::int64_t weight(std::int64_t distance) const noexcept {
    constexpr std::int64_t one = std::int64_t{1} << fraction_bits;
    const auto x = static_cast<std::int64_t>((wide{static_cast<std::uint64_t>(distance) << shift_} * reciprocal_) >>
                                             (102 - fraction_bits));
    // Twice the weight, with three times the fraction bits of x.
    const std::int64_t twice = x < one ? (3 * x - 5 * one) * x * x + 2 * one * one * one
                                       : (one - x) * (2 * one - x) * (2 * one - x);
    return twice >> (3 * fraction_bits - 30);
  }

 private:
  __extension__ typedef unsigned __int128 wide;
  static constexpr int fraction_bits = 18;

  int shift_;
  std::uint64_t reciprocal_;   // rounded up, so that a distance of n pixels is converted to exactly n
};

/// The pixels that one output may use. Source pixel i is at position (2 i + 1) * step. The first pixel is `start`, at
/// position `at`.
struct tap_window {
  std::int64_t start, end, at, center, reach, step;

  /// Computes the window of the first output.
  explicit tap_window(const plan_axis& axis) noexcept
      : start(axis.clip_begin), end(axis.clip_end), step(axis.denominator * axis.target) {   // half a source pixel
    at = (2 * start + 1) * step;
    center = (2 * axis.first + 1) * axis.length + 2 * axis.begin * axis.target;
    reach = reach_of(axis, step);
  }

  std::int64_t max_taps() const noexcept { return std::min(reach / step + 1, end - start); }   // call before seek()
  void seek() noexcept {
    for (; start + 1 < end && at <= center - reach; ++start) at += 2 * step;
  }
};

class tap_table {
 public:
  static constexpr int weight_bits = 14;
  /// Lists of fewer than 4 weights are padded with zeros. If no output has more than 4 weights, weights(o) is
  /// weights(0) + 4 * o.
  static constexpr std::size_t padded_count = 4;

  void build(const plan_axis& axis) {
    clear(axis.filter == resize_filter::bicubic);
    tap_window t(axis);
    const auto most = static_cast<std::size_t>(t.max_taps());
    if (running_.size() < most) running_.resize(most);
    if (overshoots_)
      add_outputs(axis, t,
                  [this, cubic = cubic_kernel(t.reach / 2)](const tap_window& now) { add_cubic_output(now, cubic); });
    else if (axis.filter == resize_filter::opencv_linear)
      add_outputs(axis, t, [this](tap_window now) {
        // Beyond the centers of the outermost pixels, the nearest pixel is repeated.
        now.center = std::clamp(now.center, now.at, (2 * now.end - 1) * now.step);
        add_output(now);
      });
    else add_outputs(axis, t, [this](const tap_window& now) { add_output(now); });
  }

  /// Removes all outputs. If `overshoots` is set, weights may be negative or above 2^14.
  void clear(bool overshoots = false) noexcept {
    outputs_ = used_ = max_count_ = 0;
    overshoots_ = overshoots;
  }

  /// Appends an output of `count` weights. Returns the memory to which the caller must write the weights. The weights
  /// must sum to 2^14.
  std::int16_t* append(std::size_t first, std::size_t count) {
    const std::size_t places = std::max(count, padded_count);
    if (weights_.size() < used_ + places || first_.size() == outputs_) grow(places);
    first_[outputs_] = static_cast<std::uint32_t>(first);
    count_[outputs_] = static_cast<std::uint32_t>(count);
    weights_at_[outputs_++] = static_cast<std::uint32_t>(used_);
    std::int16_t* const weights = weights_.data() + used_;
    constexpr std::array<std::int16_t, padded_count> zeros{};
    std::memcpy(weights, zeros.data(), sizeof zeros);
    used_ += places;
    if (count > max_count_) max_count_ = count;
    return weights;
  }

  static constexpr std::size_t few_outputs = 8;

  /// The memory of `few_outputs` more outputs with padded_count weights each. The caller writes all weights, including
  /// zeros after an output's last weight.
  struct few_places {
    std::uint32_t *first, *count, *weights_at;
    std::int16_t* weights;
    std::size_t used;   ///< weights_at of the first output
  };

  /// Appends `outputs` outputs (at most few_outputs) of at most `most` weights each. The returned memory always has
  /// space for few_outputs outputs.
  few_places append_few(std::size_t outputs, std::size_t most) {
    constexpr std::size_t places = few_outputs * padded_count;
    while (weights_.size() < used_ + places || first_.size() < outputs_ + few_outputs) grow(places);
    const few_places memory{first_.data() + outputs_, count_.data() + outputs_, weights_at_.data() + outputs_,
                            weights_.data() + used_, used_};
    outputs_ += outputs;
    used_ += outputs * padded_count;
    max_count_ = std::max(max_count_, most);
    return memory;
  }

  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t first(std::size_t output) const noexcept { return first_[output]; }
  std::size_t count(std::size_t output) const noexcept { return count_[output]; }
  std::size_t end(std::size_t output) const noexcept { return first(output) + count(output); }
  const std::int16_t* weights(std::size_t output) const noexcept { return weights_.data() + weights_at_[output]; }
  std::size_t max_count() const noexcept { return max_count_; }
  bool overshoots() const noexcept { return overshoots_; }

  /// The outputs together use the source pixels [source_begin, source_end).
  std::size_t source_begin() const noexcept { return first_.front(); }
  std::size_t source_end() const noexcept { return end(outputs_ - 1); }

 private:
  [[gnu::noinline]] void grow(std::size_t count) {
    for (auto* each : {&first_, &count_, &weights_at_}) each->resize(std::max<std::size_t>(2 * each->size(), 64));
    weights_.resize(2 * (used_ + count));
  }

  template <class Add>
  void add_outputs(const plan_axis& axis, tap_window& t, const Add& add) {
    for (std::int64_t o = 0; o < axis.count; ++o, t.center += 2 * axis.length) {
      t.seek();
      add(t);
    }
  }

  void add_output(const tap_window& t) {
    std::uint64_t* const running = running_.data();
    std::size_t count = 0;
    std::uint64_t sum = 0;
    for (std::int64_t i = t.start, at = t.at; i < t.end && at < t.center + t.reach; ++i, at += 2 * t.step) {
      const std::int64_t distance = at < t.center ? t.center - at : at - t.center;
      if (distance < t.reach) sum += static_cast<std::uint64_t>(t.reach - distance);
      running[count++] = sum;
    }
    // 31 bits of the running sum are precise enough, and allow a multiplication by a reciprocal instead of a division.
    const int shift = std::bit_width(sum) > 31 ? static_cast<int>(std::bit_width(sum)) - 31 : 0;
    const std::uint64_t divisor = sum >> shift;
    if (divisor != divisor_) {
      divisor_ = divisor;
      reciprocal_ = ((std::uint64_t{1} << (weight_bits + 32)) + divisor / 2) / divisor;
    }
    std::int16_t* const weights = append(static_cast<std::size_t>(t.start), count);
    std::uint64_t before = 0;
    for (std::size_t k = 0; k + 1 < count; ++k) {
      const std::uint64_t upto = ((running[k] >> shift) * reciprocal_ + (std::uint64_t{1} << 31)) >> 32;
      weights[k] = static_cast<std::int16_t>(upto - before);
      before = upto;
    }
    weights[count - 1] = static_cast<std::int16_t>((std::uint64_t{1} << weight_bits) - before);
  }

  /// Adds an output whose weights may be negative. Therefore running sums may be negative or decrease.
  void add_cubic_output(const tap_window& t, const cubic_kernel& kernel) {
    std::uint64_t* const running = running_.data();   // signed sums, stored as two's complement
    std::size_t count = 0;
    std::int64_t sum = 0;
    for (std::int64_t i = t.start, at = t.at; i < t.end && at < t.center + t.reach; ++i, at += 2 * t.step) {
      sum += kernel.weight(at < t.center ? t.center - at : at - t.center);
      running[count++] = static_cast<std::uint64_t>(sum);
    }
    const int shift = std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sum))) - 31, 0);
    const std::int64_t divisor = sum >> shift;
    const std::int64_t reciprocal = ((std::int64_t{1} << (weight_bits + 32)) + divisor / 2) / divisor;
    std::int16_t* const weights = append(static_cast<std::size_t>(t.start), count);
    std::int64_t before = 0;
    for (std::size_t k = 0; k + 1 < count; ++k) {
      const std::int64_t upto = ((static_cast<std::int64_t>(running[k]) >> shift) * reciprocal +
                                 (std::int64_t{1} << 31)) >>
                                32;
      weights[k] = static_cast<std::int16_t>(upto - before);
      before = upto;
    }
    weights[count - 1] = static_cast<std::int16_t>((std::int64_t{1} << weight_bits) - before);
  }

  std::vector<std::uint32_t> first_, count_, weights_at_;   // one per output
  std::vector<std::int16_t> weights_;
  std::vector<std::uint64_t> running_;
  std::size_t outputs_ = 0, used_ = 0;   // number of outputs, and of used elements of weights_
  std::size_t max_count_ = 0;
  bool overshoots_ = false;
  std::uint64_t divisor_ = 0, reciprocal_ = 0;   // cached, because many outputs have the same sum
};

// Computes the weights of a resize along one axis, for chroma of half the resolution. These weights perform the chroma
// upsampling (fancy_upsampling.hpp) and the resize in one step. If L(x) is the weight of luma sample x, the weight of
// chroma sample k for the same output is
//
//   (L(2k-1) + 3 L(2k) + 3 L(2k+1) + L(2k+2)) / 4.
//
// At the image's edge libjpeg repeats the last sample, so weights beyond the edge are added to that sample's weight.
// The weights of an output sum to 2^14 exactly. Bicubic weights may be negative.

/// Writes the table. `extent` is the number of chroma samples of the full axis.
inline void compose_chroma(const tap_table& luma, std::size_t extent, tap_table& into) {
  into.clear(luma.overshoots());
  const std::size_t last = extent - 1;
  for (std::size_t o = 0; o < luma.outputs(); ++o) {
    const std::size_t begin = luma.first(o), end = luma.end(o);
    const std::size_t first = begin == 0 ? 0 : std::min((begin - 1) / 2, last);
    const std::size_t count = std::min(end / 2, last) - first + 1;
    const std::int16_t* const of_luma = luma.weights(o);
    const auto at = [&](std::size_t x) {   // 0 beyond both ends: x < begin wraps around to a huge number
      return x - begin < end - begin ? of_luma[x - begin] : 0;
    };
    std::int16_t* const weights = into.append(first, count);
    int running = 0, before = 0;
    for (std::size_t k = first; k < first + count; ++k) {
      running += at(2 * k - 1) + 3 * (at(2 * k) + at(2 * k + 1)) + at(2 * k + 2);
      if (k == 0) running += at(0);
      if (k == last) running += at(2 * last + 1);
      const int upto = (running + 2) >> 2;
      weights[k - first] = static_cast<std::int16_t>(upto - before);
      before = upto;
    }
  }
}

}}}   // namespace millrace::detail
