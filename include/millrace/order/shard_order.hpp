// Computes the order of the shards in an epoch, and shuffles their samples within a window. Uses no threads and no I/O.
//
//   mr::detail::shard_order order({.seed = 7, .shards = 147, .shuffled = true, .window = 8192});
//   order.shards_of(epoch)[k];                              // the k-th shard to read in that epoch
//   mr::detail::jitter_order<mr::record> window(order);     // receives samples in that order, returns them shuffled
//
// (seed, epoch) determines a permutation of the shards. The samples of the shards in that order are the epoch's
// sequence. A sliding jitter moves each sample by less than `window` places, and buffers about half a window of
// samples. If an epoch has at most `window` samples, its order is a uniform permutation instead. Without a shuffle, the
// order is the order of the user's list.
// The length of the first epoch is unknown. Therefore the jitter withholds all samples until more than `window` samples
// have arrived, or the epoch has ended. If all epochs have the same samples, and more than `window` of them, later
// epochs withhold no samples.
// Errors: setup_error from end_epoch(). Threads: a shard_order is immutable; a jitter_order is not thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/order/sliding_jitter.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The order of the shards of each epoch, and the keys by which the jitter sorts the samples.
class shard_order {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::size_t shards = 1;
    bool shuffled = false;
    std::size_t window = 1;   ///< shuffle window in samples
    std::size_t lane = 0;     ///< lane l owns shards l, l + lanes, l + 2 * lanes, ... of the epoch's order
    std::size_t lanes = 1;
    bool permutes = true;        ///< whether an epoch of at most `window` samples is permuted uniformly
    bool equal_epochs = false;   ///< all epochs have the same samples
  };

  explicit shard_order(options o) : options_(o) {}

  /// Returns the options.
  const options& settings() const noexcept { return options_; }

  /// The ordinal of a sample is its place after the shuffle. Returns the index from which the sequence must be read to
  /// deliver the samples from `ordinal` on.
  std::uint64_t first_needed_for(std::uint64_t ordinal) const noexcept;

  /// Returns whether each epoch reads all shards as listed. In this case, callers do not need shards_of().
  bool as_listed() const noexcept { return !options_.shuffled && options_.lanes == 1; }
  /// Returns the shards of the lane (an interleaved substream of the order) in the order of an epoch.
  std::vector<std::size_t> shards_of(std::uint64_t epoch) const;

  /// Returns the key by which the jitter sorts sample `index` of the epoch's sequence, in ascending order. The key is a
  /// fractional place in the order, multiplied by 65536.
  std::uint64_t jitter_key(std::uint64_t epoch, std::uint64_t index) const noexcept;
  /// Returns whether the jitter changes the order at all.
  bool jitters() const noexcept { return options_.shuffled && options_.window > 1; }
  /// Returns whether an epoch of at most `window` samples is a uniform permutation.
  bool permutes() const noexcept { return jitters() && options_.permutes; }
  /// Returns the key of sample `index` if the order of the epoch is a uniform permutation: 64 random bits.
  std::uint64_t permutation_key(std::uint64_t epoch, std::uint64_t index) const noexcept;

 private:
  // Random streams that no stage uses.
  static constexpr std::uint64_t shard_stream = ~std::uint64_t{0};
  static constexpr std::uint64_t jitter_stream = ~std::uint64_t{0};
  static constexpr std::uint64_t permutation_stream = ~std::uint64_t{4};

  std::uint64_t key_of(std::uint64_t index) const noexcept {
    return options_.lanes == 1 ? index : combine_keys(options_.lane, index);
  }

  options options_;
};

/// Receives the samples of an epoch in sequence. Returns each sample when its place in the shuffled order is final.
template <class T>
class jitter_order {
 public:
  /// `order` must outlive this object.
  explicit jitter_order(const shard_order& order) : plan_(&order), withholds_(order.permutes()) {}

  /// Adds the next sample of the sequence.
  void push(sample<T>&& s) {
    const std::uint64_t arrived = order_.arrived();
    epoch_ = s.epoch;
    if (arrived >= plan_->settings().window) withholds_ = false;
    const std::uint64_t key = plan_->jitters() ? plan_->jitter_key(s.epoch, arrived) : arrived << 16;
    held_bytes_ += held_bytes_of(s);
    std::size_t slot;
    if (spare_.empty()) {
      slot = samples_.size();
      samples_.push_back(std::move(s));
    } else {
      slot = spare_.back();
      spare_.pop_back();
      samples_[slot] = std::move(s);
    }
    order_.push({.key = key, .slot = slot});
  }

  /// Returns whether pop() may be called: no later arrival can sort before the next sample.
  bool ready() const noexcept { return ended_ ? !order_.empty() : !withholds_ && order_.is_certain(); }

  /// Returns the next sample. Requires ready().
  sample<T> pop() {
    const std::size_t slot = order_.pop().slot;
    spare_.push_back(slot);
    sample<T> s = std::move(samples_[slot]);
    held_bytes_ -= held_bytes_of(s);
    return s;
  }

  /// Marks the sequence as complete, so that all buffered samples become ready. Throws setup_error if the order of the
  /// epoch must be a uniform permutation, but release() was called during the epoch.
  void end_epoch() {
    ended_ = true;
    length_ = order_.arrived();
    if (withholds_) permute();
    else if (released_ && length_ <= plan_->settings().window) throw released_error();
  }
  /// Prepares for the sequence of the next epoch. `without` is the number of samples at the start of the sequence that
  /// a resumed run does not read again. Requires empty().
  void begin_epoch(std::uint64_t without = 0) noexcept {
    ended_ = released_ = false;
    // A resumed run skips samples only in an epoch with more than a window of samples.
    const bool is_long = without > 0 || (plan_->settings().equal_epochs && length_ > plan_->settings().window);
    withholds_ = plan_->permutes() && !is_long;
    order_.start(without);
  }
  /// Stops withholding samples. Callers use it when memory is short. Returns false if no samples were withheld.
  bool release() noexcept {
    released_ = released_ || withholds_;
    return std::exchange(withholds_, false);
  }
  /// Drops the buffered samples.
  void clear() noexcept {
    withholds_ = released_ = false;
    order_.clear();
    samples_.clear();
    spare_.clear();
    held_bytes_ = 0;
  }

  /// Returns whether no sample is buffered.
  bool empty() const noexcept { return order_.empty(); }
  /// Returns the number of buffered samples.
  std::size_t size() const noexcept { return order_.size(); }
  /// Returns the bytes that the buffered samples keep alive.
  std::size_t held_bytes() const noexcept { return held_bytes_; }

 private:
  struct entry {
    std::uint64_t key = 0, index = 0;
    std::size_t slot = 0;
  };

  /// Assigns random keys to all buffered samples, which form a complete epoch.
  void permute() {
    std::vector<entry> all;
    all.reserve(order_.size());
    while (!order_.empty()) all.push_back(order_.pop());
    for (entry& e : all) e.key = plan_->permutation_key(epoch_, e.index);
    order_.start(length_, std::move(all));
  }
  MILLRACE_RARE setup_error released_error() const {
    return setup_error(
        "the shuffle window covers the data set and exceeds the memory: got a window of " +
            std::to_string(plan_->settings().window) + " for a pass of " + std::to_string(length_) +
            " samples, expected a smaller window or more memory",
        "Set shuffle's .window below " + std::to_string(length_) + ", or raise session_options::memory_bytes");
  }

  const shard_order* plan_;
  sliding_jitter<entry> order_;
  std::vector<sample<T>> samples_;
  std::vector<std::size_t> spare_;
  std::size_t held_bytes_ = 0;
  std::uint64_t length_ = 0;   // number of samples of the last completed epoch
  std::uint64_t epoch_ = 0;
  bool ended_ = false;
  bool withholds_ = false;   // true while all samples are withheld
  bool released_ = false;    // release() ended the withholding, because memory was short
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/order/impl/shard_order.inl>
#endif
