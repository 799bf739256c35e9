// The interface through which a session uses its last segment (the stages that fill batches). Does not depend on the
// types of maps and columns.
//
//   if (last.make_early(0)) std::puts(last.describe().c_str());      // the shapes are known
//   last.open_slots();                                               // after the slots are allocated
//
// The only implementation is batch_segment. Errors: make_early() throws the error of a sample, unless the run tolerates
// it as damage. Threads: see work/batch/batch_segment.hpp.
#pragma once

#include <millrace/order/batch_numbers.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/schedule/dispatcher.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Receives rows that were computed on another machine. The caller must first claim the ticket (sequence number) of
/// each row, so that no worker computes the row.
class segment_row_target {
 public:
  virtual ~segment_row_target() = default;
  /// Returns the maximum number of bytes that store_row() accepts for a row. Requires that the shapes are known.
  virtual std::size_t max_row_bytes() const noexcept = 0;
  /// Returns the first ticket that make_early() has not processed. Rows of earlier tickets cannot be stored.
  virtual std::uint64_t first_ticket() const noexcept = 0;
  /// Returns whether the ticket has a sample that could be read.
  virtual bool has_sample(std::uint64_t ticket) const noexcept = 0;
  /// Writes the row of a ticket (column_places::set_row()), removes the sample, and closes the batch if all its rows
  /// are finished. If the bytes are not a row, returns false and does not change the ticket.
  virtual bool store_row(std::uint64_t ticket, std::span<const std::byte> bytes) noexcept = 0;
};

/// The interface of the last segment for the session.
class final_segment : public space_listener {
 public:
  /// Returns the target for rows that were computed on another machine; null if rows depend on each other
  /// (mix_rows).
  virtual segment_row_target* rows() noexcept { return nullptr; }
  /// Creates the item of `position`. Before slots exist, call this function for the positions 0, 1, ... until it
  /// returns true: that item defines all shapes. Returns false if the position has no item.
  virtual bool make_early(std::uint64_t position) = 0;
  /// Returns the error of the first damaged sample that make_early() skipped; null if it skipped none.
  virtual std::exception_ptr early_damage() const noexcept = 0;
  /// Assigns free slots to the next batches.
  virtual void open_slots() = 0;
  /// Returns the size of a batch in bytes. Requires that the shapes are known.
  virtual std::size_t batch_bytes() const = 0;
  /// Returns a text with the shapes and types of the columns. Requires that the shapes are known.
  virtual std::string describe() const = 0;
  /// Returns the dispatcher of the segment.
  virtual dispatcher& tickets() noexcept = 0;
};

// The interface through which a session receives rows that other machines compute. Sessions include only this
// interface, because the headers of adapt/feeders would increase the compile time.
//
// The only implementation is row_requests in adapt/feeders/impl/row_storage.inl.
// Errors: open() throws setup_error. Threads: any thread may call changes() and may_change().

/// The parts of a session that a row_feed uses.
struct row_feed_options {
  final_segment* last = nullptr;
  batch_ring* batches = nullptr;
  batch_numbers numbers{};
  /// True if the session has no workers. Each change must then wake the trainer (the thread that calls next()), which
  /// does all work.
  bool wakes_trainer = false;
};

/// Requests rows from other machines and stores them.
class row_feed : public pipeline_node {
 public:
  /// Starts to request rows. `order` is planned_run::order_text(). Throws setup_error if another machine cannot compute
  /// the rows of the flow.
  virtual void open(std::string order, std::string columns) = 0;
  /// Returns a number that changes after each of these events: rows are requested, rows are stored, or the workers must
  /// compute requested rows.
  virtual std::uint64_t changes() const noexcept = 0;
  /// Returns whether requests are outstanding, or changes() differs from `before`.
  virtual bool may_change(std::uint64_t before) const noexcept = 0;
};

}}}   // namespace millrace::detail
