// One pass through the data set, before any shuffling: the shards in their order, laid end to end.
//
//   pass_layout layout({.counts = counts, .parts = {2, 0, 1}, .dropped = 5, .dropped_at = 40});
//   layout.length();                    // samples that are delivered: all but the dropped ones
//   layout.find(17);                    // {part, index} of the 17th of them
//   layout.dropped();                   // the others, by name
//
// Counts are samples of each part in the list as the user gave it, `parts` is a permutation of that list, parts may be
// empty. What is dropped is one stretch, wherever the plan puts it. Errors: none; find() wants a number below length().
// Threads: immutable; a locator belongs to one thread.
#pragma once

#include <millrace/item/sample.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class pass_layout {
 public:
  struct options {
    std::span<const std::uint64_t> counts{};   ///< only looked at during construction
    std::vector<std::size_t> shards{};
    std::uint64_t dropped = 0;
    std::uint64_t dropped_at = 0;   ///< how many samples are delivered from in front of the dropped ones
  };

  pass_layout() = default;
  explicit pass_layout(options o)
      : shards_(std::move(o.shards)), dropped_(o.dropped), dropped_at_(o.dropped_at) {
    starts_.clear();
    starts_.reserve(shards_.size() + 1);
    std::uint64_t total = 0;
    for (const std::size_t shard : shards_) {
      starts_.push_back(total);
      total += o.counts[shard];
    }
    starts_.push_back(total);
  }

  std::uint64_t length() const noexcept { return starts_.back() - dropped_; }

  located_sample find(std::uint64_t number) const noexcept {
    std::size_t nearby = 0;
    return find_from(nearby, number);
  }

  /// The same, faster where `nearby` is what the last such call left: numbers of one lane lie close together.
  located_sample find_from(std::size_t& nearby, std::uint64_t number) const noexcept {
    const std::uint64_t place = number < dropped_at_ ? number : number + dropped_;
    if (place < starts_[nearby] || place >= starts_[nearby + 1]) {
      const auto after = std::upper_bound(starts_.begin(), starts_.end(), place);
      nearby = static_cast<std::size_t>(after - starts_.begin()) - 1;
    }
    return {shards_[nearby], place - starts_[nearby]};
  }

  std::vector<located_sample> dropped() const {
    std::vector<located_sample> left_out;
    for (std::size_t k = 0; k < shards_.size(); ++k) {
      const std::uint64_t end = std::min(starts_[k + 1], dropped_at_ + dropped_);
      for (std::uint64_t place = std::max(starts_[k], dropped_at_); place < end; ++place)
        left_out.push_back({shards_[k], place - starts_[k]});
    }
    return left_out;
  }

 private:
  std::vector<std::size_t> shards_;
  std::vector<std::uint64_t> starts_{0};   // of each part, and the end
  std::uint64_t dropped_ = 0, dropped_at_ = 0;
};

}}  // namespace millrace
