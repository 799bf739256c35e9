// The plan: which sample has which position. Pure arithmetic on (seed, epoch); no threads, no I/O.
//
//   plan order({.seed = 7, .parts = 147, .shuffled = true, .window = 8192});
//   order.part(epoch, k);                      // the k-th shard to be read in that epoch
//   jitter_order<record> window(order);        // samples in, in the order of the parts; out in plan order
//
// Parts are permuted by (seed, epoch) (Fisher-Yates on counter-based numbers). Sample i of the epoch's sequence gets
// the key i + U(seed, epoch, i) * window, and samples come in key order: "sliding jitter". A sample moves by less than
// `window` places, about half a window is held, and the order depends on nothing else. Not shuffled: as listed.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/sample.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class shard_order {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::size_t shards = 1;
    bool shuffled = false;
    std::size_t window = 1;   ///< in samples
    std::size_t lane = 0;     ///< of `lanes`: every so-maniest part of an epoch's order belongs to it
    std::size_t lanes = 1;
  };

  explicit shard_order(options o) : options_(o) {}

  const options& settings() const noexcept { return options_; }

  /// A sample that comes at `place` has all before this one behind it, whatever the draws: they came before it.
  std::uint64_t first_needed_for(std::uint64_t place) const noexcept {
    const std::uint64_t window = jitters() ? options_.window : 1;
    return place < window ? 0 : place - window + 1;
  }

  /// Whether each epoch takes all parts as they were listed: parts_of() need not be asked, nor held for many.
  bool as_listed() const noexcept { return !options_.shuffled && options_.lanes == 1; }
  /// The order of the parts in an epoch.
  std::vector<std::size_t> shards_of(std::uint64_t epoch) const {
    std::vector<std::size_t> order(options_.shards);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (options_.shuffled) {
      rng random({.seed = options_.seed, .epoch = epoch, .sample = shard_stream, .stage = 0});
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
    if (options_.lanes == 1) return order;
    std::size_t kept = 0;
    for (std::size_t i = options_.lane; i < order.size(); i += options_.lanes) order[kept++] = order[i];
    order.resize(kept);
    return order;
  }

  /// Where sample `index` of the epoch's sequence sorts, in 1/65536 of a place.
  std::uint64_t jitter_key(std::uint64_t epoch, std::uint64_t index) const noexcept {
    const std::uint64_t sample = options_.lanes == 1 ? index : combine_keys(options_.lane, index);
    rng random({.seed = options_.seed, .epoch = epoch, .sample = sample, .stage = jitter_stream});
    return (index << 16) + random.below(static_cast<std::uint64_t>(options_.window) << 16);
  }
  bool jitters() const noexcept { return options_.shuffled && options_.window > 1; }

 private:
  // Streams of their own, apart from those of the stages that draw.
  static constexpr std::uint64_t shard_stream = ~std::uint64_t{0};
  static constexpr std::uint64_t jitter_stream = ~std::uint64_t{0};

  options options_;
};

/// Takes the samples of an epoch in sequence and gives them out in plan order, as soon as that order is certain.
template <class T>
class jitter_order {
 public:
  explicit jitter_order(const shard_order& order) : plan_(&order) {}

  void push(sample<T>&& s) {
    const std::uint64_t key = plan_->jitters() ? plan_->jitter_key(s.epoch, arrived_) : arrived_ << 16;
    held_bytes_ += held_bytes_of(*s.item);
    std::size_t place;
    if (spare_.empty()) {
      place = held_.size();
      held_.push_back(std::move(s));
    } else {
      place = spare_.back();
      spare_.pop_back();
      held_[place] = std::move(s);
    }
    heap_.push_back({key, arrived_++, place});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Whether the next sample in plan order is known: no later arrival can sort before it.
  bool ready() const noexcept { return !heap_.empty() && (ended_ || heap_.front().key <= arrived_ << 16); }

  sample<T> pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const std::size_t place = heap_.back().place;
    heap_.pop_back();
    spare_.push_back(place);
    sample<T> s = std::move(held_[place]);
    held_bytes_ -= held_bytes_of(*s.item);
    return s;
  }

  /// The epoch's sequence is complete: everything left may come out.
  void end_epoch() noexcept { ended_ = true; }
  /// Ready for the next epoch's sequence, once empty; or for its sequence without the first few.
  void begin_epoch(std::uint64_t without = 0) noexcept {
    ended_ = false;
    arrived_ = without;
  }
  /// Drops what is held.
  void clear() noexcept {
    heap_.clear();
    held_.clear();
    spare_.clear();
    held_bytes_ = 0;
  }

  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  std::size_t held_bytes() const noexcept { return held_bytes_; }

 private:
  struct entry {
    std::uint64_t key, index;
    std::size_t place;
    // The heap's front is the greatest, so "less" is "sorts later".
    bool operator<(const entry& other) const noexcept {
      return key != other.key ? key > other.key : index > other.index;
    }
  };

  const shard_order* plan_;
  std::vector<entry> heap_;
  std::vector<sample<T>> held_;
  std::vector<std::size_t> spare_;
  std::uint64_t arrived_ = 0;
  std::size_t held_bytes_ = 0;
  bool ended_ = false;
};

}}  // namespace millrace
