// Accounts for the batches of one rank: their digest, and whether each epoch delivered what was planned.
//
//   mr::detail::delivery_account account({.epoch = 3, .batch = 100, .batches = 5'004, .rows = 1'281'024,
//                                         .dropped = 143, .delivered = 25'600, .digest = from_the_resume_point});
//   account.deliver(batch);             // each batch in order; throws at the epoch's end if anything is missing
//   account.finish();                   // no more batches come
//   account.digest();                   // this rank's share of the run's digest so far
//
// Law of conservation: at the end of each epoch, delivered + damaged + dropped_last = planned, in samples of this rank.
// Damaged are those whose row holds a copy or zeros. The order
// gives all three numbers for each rank's share. So if the law holds on every rank, it holds for all ranks together.
// An endless epoch has no end, so the law is never checked there.
// Errors: conservation_error with both sums. Threads: one; digest() and dropped() from any.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/sync/batch_ring.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The start of the account, and the numbers of each epoch for this rank.
struct delivery_account_options {
  std::uint64_t epoch = 0, batch = 0;   ///< first epoch, and first batch in it
  std::uint64_t batches = 0;            ///< batches of an epoch
  std::uint64_t rows = 0;               ///< samples of this rank that an epoch delivers
  std::uint64_t dropped = 0;            ///< samples of this rank that an epoch drops with its last batch
  std::uint64_t delivered = 0;          ///< samples of the first epoch that were delivered before
  std::uint64_t digest = 0;             ///< initial value of digest()
};

/// Checks the law of conservation at the end of each epoch, and sums up the digest.
class delivery_account {
 public:
  using options = delivery_account_options;

  explicit delivery_account(const options& o);

  /// Adds the next batch in order.
  /// Throws conservation_error if the batch is of another epoch, or if it ends an epoch that lacks samples.
  void deliver(const ready_batch& b);
  /// Tells the account that no more batches come. Throws conservation_error if an epoch is incomplete.
  void finish() const;

  /// Returns this rank's share of the run's digest so far: a wrapping sum.
  std::uint64_t digest() const noexcept { return digest_.load(std::memory_order_relaxed); }
  /// Returns the number of samples of this rank that the epochs so far dropped at their ends.
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  void end_epoch();
  conservation_error violation(const std::string& did) const;

  const options options_;
  std::uint64_t epoch_, batch_, delivered_, damaged_ = 0;
  std::atomic<std::uint64_t> digest_, dropped_{0};
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/run/impl/delivery_account.inl>
#endif
