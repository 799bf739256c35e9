// The interface between a session and rows that other machines compute. Sessions include only this header, because the
// headers of adapt/feeders would increase the compile time.
//
//   void start(mr::detail::row_feed& rows, const mr::detail::final_segment& last) {
//     rows.open("millrace version=6 seed=7 ...", last.describe());   // call it after the slots are allocated
//   }
//
// The only implementation is row_requests in adapt/feeders/impl/row_storage.inl.
// Errors: open() throws setup_error. Threads: any thread may call changes() and may_change().
#pragma once

#include <millrace/order/batch_numbers.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/final_segment.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The parts of a session that a row_feed uses.
struct row_feed_options {
  final_segment* last = nullptr;
  batch_ring* batches = nullptr;
  batch_numbers numbers{};
  bool wakes_trainer = false;   ///< whether the trainer waits for changes(), because the session has no workers
};

/// Requests rows from other machines and stores them.
class row_feed : public pipeline_node {
 public:
  /// Starts to request rows. `order` is planned_run::order_text(). Throws setup_error if another machine cannot compute
  /// the rows of the flow.
  virtual void open(std::string order, std::string columns) = 0;
  /// Returns a number that changes when rows are requested, stored or returned to the workers.
  virtual std::uint64_t changes() const noexcept = 0;
  /// Returns whether requests are outstanding, or changes() differs from `before`.
  virtual bool may_change(std::uint64_t before) const noexcept = 0;
};

}}}   // namespace millrace::detail
