// Sums up the digest (checksum of the delivered samples) of one rank, and checks that each epoch is complete.
//
//   mr::detail::delivery_account account({.epoch = 3, .batch = 100, .batches = 5'004, .rows = 1'281'024,
//                                         .dropped = 143, .delivered = 25'600, .digest = from_the_resume_point});
//   account.deliver(batch);             // each batch in order; throws at the end of an incomplete epoch
//   account.finish();                   // no more batches follow
//   account.digest();                   // this rank's part of the digest of the run so far
//
// Law of conservation: at the end of each epoch, delivered + damaged + dropped_last = planned, in samples of this rank.
// A sample counts as damaged if its row contains a copy of another row, or zeros. The law is not checked for an endless
// epoch.
// Errors: conservation_error with the actual and the planned sum. Threads: not thread-safe, but any thread may call
// digest() and dropped().
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/sync/batch_ring.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The start of the account, and the planned numbers of each epoch for this rank.
struct delivery_account_options {
  std::uint64_t epoch = 0, batch = 0;   ///< first epoch, and number of its first batch
  std::uint64_t batches = 0;            ///< batches of an epoch
  std::uint64_t rows = 0;               ///< samples of this rank that an epoch delivers
  std::uint64_t dropped = 0;            ///< samples of this rank that an epoch drops with its last batch
  std::uint64_t delivered = 0;          ///< samples of the first epoch that earlier sessions delivered on this rank
  std::uint64_t digest = 0;             ///< initial value of digest()
};

/// Checks the law of conservation at the end of each epoch, and sums up the digest.
class delivery_account {
 public:
  using options = delivery_account_options;

  explicit delivery_account(const options& o)
      : options_(o), epoch_(o.epoch), batch_(o.batch), delivered_(o.delivered), digest_(o.digest) {}

  /// Adds the next batch. Throws conservation_error if the batch has the wrong epoch, or ends an epoch with missing
  /// samples.
  void deliver(const ready_batch& b) {
    if (b.epoch != epoch_) throw violation("delivered");   // the epoch ended too early or too late
    delivered_ += b.rows - b.damaged.size();
    damaged_ += b.damaged.size();
    if (++batch_ == options_.batches) end_epoch();
    digest_.store(digest() + b.digest, std::memory_order_relaxed);
  }
  /// Completes the account after the last batch. Throws conservation_error if an epoch is incomplete.
  void finish() const {
    if (batch_ > 0) throw violation("was interrupted by the end of the run: it delivered");
  }

  /// Returns this rank's part of the run's digest so far. The part is a sum that may wrap around.
  std::uint64_t digest() const noexcept { return digest_.load(std::memory_order_relaxed); }
  /// Returns how many samples of this rank have been dropped at epoch ends so far.
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  void end_epoch() {
    if (delivered_ + damaged_ != options_.rows) throw violation("delivered");
    dropped_.store(dropped() + options_.dropped, std::memory_order_relaxed);
    delivered_ = damaged_ = 0;
    batch_ = 0;
    ++epoch_;
  }
  MILLRACE_RARE conservation_error violation(const std::string& did) const {
    const std::string dropped = std::to_string(options_.dropped);
    return {"epoch " + std::to_string(epoch_) + " " + did + " " + std::to_string(delivered_) + " samples in " +
                std::to_string(batch_) + " batches, " + (damaged_ > 0 ? std::to_string(damaged_) + " damaged, " : "") +
                dropped + " dropped (" + std::to_string(delivered_ + damaged_ + options_.dropped) +
                " in total): expected " + std::to_string(options_.rows) + " in " + std::to_string(options_.batches) +
                " batches, " + dropped + " dropped (" + std::to_string(options_.rows + options_.dropped) +
                " in total on this rank)",
            "Correct the source: it delivered fewer or more samples than it counts, so all later samples have wrong "
            "positions"};
  }

  const options options_;
  std::uint64_t epoch_, batch_, delivered_, damaged_ = 0;
  std::atomic<std::uint64_t> digest_, dropped_{0};
};

}}}   // namespace millrace::detail
