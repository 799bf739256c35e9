// The weights of an antialiased bilinear resize along one axis, in integers.
//
//   mr::detail::tap_table t;
//   t.build(axis);                         // keeps its memory from picture to picture
//   t.first(i), t.count(i), t.weights(i);  // output i (in source order) = sum weights[k] * source[first + k] >> 14
//
// With source length n, target m: the raw weight of source pixel i for output o is
// max(0, 2 max(n, m) - |(2i + 1) m - (2o + 1) n|), the triangle filter of Pillow and torchvision ("antialias"), here
// with a box that may begin anywhere. Weights of an output sum to 2^14 exactly: the running sum is rounded and its
// differences are taken, which also keeps the error of long filters from adding up. Integers alone: the same table with
// every compiler and flag.
#pragma once

#include <millrace/image/plan_axis.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::inline MILLRACE_ABI {
namespace detail {

class tap_table {
 public:
  static constexpr int weight_bits = 14;

  void build(const plan_axis& axis) {
    clear();
    const std::int64_t step = axis.denominator * axis.target;   // half a source pixel
    const std::int64_t reach = 2 * (axis.length > step ? axis.length : step);
    std::int64_t start = axis.clip_begin;
    for (std::int64_t o = axis.first; o < axis.first + axis.count; ++o) {
      const std::int64_t centre = (2 * o + 1) * axis.length + 2 * axis.begin * axis.target;
      while (start + 1 < axis.clip_end && (2 * start + 1) * step <= centre - reach) ++start;
      add_output(axis, start, centre, reach, step);
    }
  }

  void clear() noexcept {
    spans_.clear();
    weights_.clear();
    max_count_ = 0;
  }

  /// One more output, of `count` weights that are 0 or more and sum to 2^14.
  void append(std::size_t first, const std::int16_t* weights, std::size_t count) {
    spans_.push_back({first, count, weights_.size()});
    weights_.insert(weights_.end(), weights, weights + count);
    if (count > max_count_) max_count_ = count;
  }

  std::size_t outputs() const noexcept { return spans_.size(); }
  std::size_t first(std::size_t output) const noexcept { return spans_[output].first; }
  std::size_t count(std::size_t output) const noexcept { return spans_[output].count; }
  std::size_t end(std::size_t output) const noexcept { return first(output) + count(output); }
  const std::int16_t* weights(std::size_t output) const noexcept { return weights_.data() + spans_[output].weights_at; }
  std::size_t max_count() const noexcept { return max_count_; }

  /// The source pixels that any output uses: [source_begin, source_end).
  std::size_t source_begin() const noexcept { return spans_.front().first; }
  std::size_t source_end() const noexcept { return end(spans_.size() - 1); }

 private:
  struct tap_span {
    std::size_t first, count, weights_at;
  };

  void add_output(const plan_axis& axis, std::int64_t start, std::int64_t centre, std::int64_t reach,
                  std::int64_t step) {
    running_.clear();
    std::uint64_t sum = 0;
    for (std::int64_t i = start, at = (2 * start + 1) * step; i < axis.clip_end && at < centre + reach;
         ++i, at += 2 * step) {
      const std::int64_t distance = at < centre ? centre - at : at - centre;
      if (distance < reach) sum += static_cast<std::uint64_t>(reach - distance);
      running_.push_back(sum);
    }
    // 31 bits of the running sum are plenty, and leave room for one reciprocal instead of a division per tap.
    const int shift = std::bit_width(sum) > 31 ? static_cast<int>(std::bit_width(sum)) - 31 : 0;
    const std::uint64_t whole = sum >> shift;
    const std::uint64_t reciprocal = ((std::uint64_t{1} << (weight_bits + 32)) + whole / 2) / whole;
    const std::size_t weights_at = weights_.size();
    std::uint64_t before = 0;
    for (std::size_t k = 0; k < running_.size(); ++k) {
      const bool last = k + 1 == running_.size();
      const std::uint64_t upto = last ? std::uint64_t{1} << weight_bits
                                      : ((running_[k] >> shift) * reciprocal + (std::uint64_t{1} << 31)) >> 32;
      weights_.push_back(static_cast<std::int16_t>(upto - before));
      before = upto;
    }
    spans_.push_back({static_cast<std::size_t>(start), running_.size(), weights_at});
    if (running_.size() > max_count_) max_count_ = running_.size();
  }

  std::vector<tap_span> spans_;
  std::vector<std::int16_t> weights_;
  std::vector<std::uint64_t> running_;
  std::size_t max_count_ = 0;
};

}  // namespace detail
}  // namespace millrace::inline MILLRACE_ABI
