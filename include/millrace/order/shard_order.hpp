// Computes the order of the shards in an epoch, and the jitter of the samples. Pure arithmetic: no threads, no I/O.
//
//   mr::detail::shard_order order({.seed = 7, .shards = 147, .shuffled = true, .window = 8192});
//   order.shards_of(epoch)[k];                              // the k-th shard to read in that epoch
//   mr::detail::jitter_order<mr::record> window(order);     // takes samples in that order, returns them shuffled
//
// (seed, epoch) permutes the shards (Fisher-Yates on counter-based random numbers). Sample i of the epoch's sequence
// gets the key i + U(seed, epoch, i) * window. Samples come in the order of their keys: a sliding jitter. A sample
// moves by less than `window` ordinals, and the jitter holds about half a window of samples. The order depends on
// nothing else. Without a shuffle, the order is the list as the user gave it.
// Errors: none. Threads: a shard_order is immutable; one thread uses a jitter_order.
#pragma once

#include <millrace/item/sample.hpp>
#include <millrace/order/sliding_jitter.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order of the shards of each epoch, and the keys of the jitter.
class shard_order {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::size_t shards = 1;
    bool shuffled = false;
    std::size_t window = 1;   ///< in samples
    std::size_t lane = 0;     ///< lane l owns shards l, l + lanes, l + 2 * lanes, ... of the epoch's order
    std::size_t lanes = 1;
  };

  explicit shard_order(options o) : options_(o) {}

  /// Returns the options.
  const options& settings() const noexcept { return options_; }

  /// Returns the lowest sample index that may come at or after ordinal `ordinal`. All lower indices come earlier,
  /// whatever their random numbers.
  std::uint64_t first_needed_for(std::uint64_t ordinal) const noexcept;

  /// Returns whether each epoch takes all shards as listed. Then shards_of() need not be called, nor its result held.
  bool as_listed() const noexcept { return !options_.shuffled && options_.lanes == 1; }
  /// Returns the shards of the lane in the order of an epoch.
  std::vector<std::size_t> shards_of(std::uint64_t epoch) const;

  /// Returns the key of sample `index` of the epoch's sequence, in 1/65536 of a sample.
  std::uint64_t jitter_key(std::uint64_t epoch, std::uint64_t index) const noexcept;
  /// Returns whether the jitter changes the order at all.
  bool jitters() const noexcept { return options_.shuffled && options_.window > 1; }

 private:
  // Separate rng streams, distinct from the streams of the stages.
  static constexpr std::uint64_t shard_stream = ~std::uint64_t{0};
  static constexpr std::uint64_t jitter_stream = ~std::uint64_t{0};

  options options_;
};

/// Takes the samples of an epoch in sequence, and returns them in jittered order once that order is final.
template <class T>
class jitter_order {
 public:
  /// `order` must outlive this object.
  explicit jitter_order(const shard_order& order) : plan_(&order) {}

  /// Takes the next sample of the sequence.
  void push(sample<T>&& s) {
    const std::uint64_t arrived = order_.arrived();
    const std::uint64_t key = plan_->jitters() ? plan_->jitter_key(s.epoch, arrived) : arrived << 16;
    held_bytes_ += held_bytes_of(s);
    std::size_t held_at;
    if (spare_.empty()) {
      held_at = held_.size();
      held_.push_back(std::move(s));
    } else {
      held_at = spare_.back();
      spare_.pop_back();
      held_[held_at] = std::move(s);
    }
    order_.push({.key = key, .held_at = held_at});
  }

  /// Returns whether pop() may be called: no later arrival can sort before the next sample.
  bool ready() const noexcept { return ended_ ? !order_.empty() : order_.is_certain(); }

  /// Returns the next sample. Call it only if ready().
  sample<T> pop() {
    const std::size_t held_at = order_.pop().held_at;
    spare_.push_back(held_at);
    sample<T> s = std::move(held_[held_at]);
    held_bytes_ -= held_bytes_of(s);
    return s;
  }

  /// Marks the sequence as complete, so that all held samples become ready.
  void end_epoch() noexcept { ended_ = true; }
  /// Prepares for the sequence of the next epoch, or for one that lacks its first `without` samples. Requires empty().
  void begin_epoch(std::uint64_t without = 0) noexcept {
    ended_ = false;
    order_.start(without);
  }
  /// Drops the held samples.
  void clear() noexcept {
    order_.clear();
    held_.clear();
    spare_.clear();
    held_bytes_ = 0;
  }

  /// Returns whether no sample is held.
  bool empty() const noexcept { return order_.empty(); }
  /// Returns the number of held samples.
  std::size_t size() const noexcept { return order_.size(); }
  /// Returns the bytes that the held samples keep alive.
  std::size_t held_bytes() const noexcept { return held_bytes_; }

 private:
  struct entry {
    std::uint64_t key = 0, index = 0;
    std::size_t held_at = 0;
  };

  const shard_order* plan_;
  sliding_jitter<entry> order_;
  std::vector<sample<T>> held_;
  std::vector<std::size_t> spare_;
  std::size_t held_bytes_ = 0;
  bool ended_ = false;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/shard_order.ipp>
#endif
