// Defines what delivery_account.hpp declares.
#pragma once

#include <millrace/read/run/delivery_account.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE delivery_account::delivery_account(const options& o)
    : options_(o), epoch_(o.epoch), batch_(o.batch), delivered_(o.delivered), digest_(o.digest) {}

MILLRACE_INLINE void delivery_account::deliver(const ready_batch& b) {
  if (b.epoch != epoch_) throw violation("delivered");   // the epoch ended too early or too late
  delivered_ += b.rows - b.damaged.size();
  damaged_ += b.damaged.size();
  if (++batch_ == options_.batches) end_epoch();
  digest_.store(digest() + b.digest, std::memory_order_relaxed);
}

MILLRACE_INLINE void delivery_account::finish() const {
  if (batch_ > 0) throw violation("had delivered, when the run was over,");
}

MILLRACE_INLINE void delivery_account::end_epoch() {
  if (delivered_ + damaged_ != options_.rows) throw violation("delivered");
  dropped_.store(dropped() + options_.dropped, std::memory_order_relaxed);
  delivered_ = damaged_ = 0;
  batch_ = 0;
  ++epoch_;
}

MILLRACE_INLINE conservation_error delivery_account::violation(const std::string& did) const {
  const std::string dropped = std::to_string(options_.dropped);
  return {"epoch " + std::to_string(epoch_) + " " + did + " " + std::to_string(delivered_) + " samples in " +
              std::to_string(batch_) + " batches, " +
              (damaged_ > 0 ? "had " + std::to_string(damaged_) + " damaged ones, " : "") + "and drops " + dropped +
              ": " + std::to_string(delivered_ + damaged_ + options_.dropped) + " together (expected: " +
              std::to_string(options_.rows) + " in " + std::to_string(options_.batches) + " and " + dropped + ": " +
              std::to_string(options_.rows + options_.dropped) + ", as planned for this rank)",
          "The source gave fewer or more samples than it counts, which is a fault in it: nothing after this point "
          "lies where it belongs"};
}

}}}  // namespace millrace::detail
