// The part of batch_segment (the last segment of a flow, which fills batches) that does not depend on the types of
// samples and columns. batch_rows handles errors, fills rows without a sample, and closes batches. A batch is closed
// when all its rows are finished. A closed batch is ready for delivery.
//
//   class my_segment : public mr::detail::batch_rows { ... };   // copies and clears rows of its columns
//   } catch (...) { fail(batch, ticket); }               // an error of the batch, or a damaged row
//   rows_done(batch, 2);                                 // closes the batch if all its rows are finished
//
// Errors: stored with the batch, not thrown. Threads: any worker may call fail() and rows_done().
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>
#include <millrace/measure/meters/phase_times.hpp>
#include <millrace/order/batch_numbers.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/segment/stage_passages.hpp>
#include <millrace/work/batch/damage_rule.hpp>
#include <millrace/work/segment/final_segment.hpp>
#include <millrace/work/schedule/worker_segment.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A sample that is not rendered into its row yet.
struct row_ticket {
  std::uint64_t position = 0;
  std::size_t map_at_work = 0;
  std::size_t bytes = 0;   ///< size of the sample in the input
  std::uint64_t digest = 0;
  /// The reason why the sample has no item: the sample could not be read, or the error that ends the run replaces it.
  bool unreadable = false, end_of_run = false;
  record origin{};
};

/// A sample that make_early() processed. The session calls make_early() before slots (the memory of batches) exist,
/// because the first item determines the size of a slot. batch_segment derives a class with the typed members.
struct early_row {
  virtual ~early_row() = default;
  std::exception_ptr error{};
};

/// The memory in which a worker prepares several rows together. batch_segment derives a class with the typed members.
struct worker_rows {
  virtual ~worker_rows() = default;
};

/// The rows of the batches of a last segment.
class batch_rows : public worker_segment, public final_segment, public segment_row_target {
 public:
  struct options {
    std::size_t rows = 1;                      ///< rows of a batch
    bool drop_last = true, pad_last = false;   ///< pad_last: masked rows fill up an incomplete batch
    bool keys = false;                         ///< whether each batch stores the keys of its rows
    std::size_t max_workers = 1;               ///< number of workers
    worker_executor* workers = nullptr;        ///< null if worker_segment::advance() does the work
    std::size_t ring_capacity = 64;            ///< minimum number of samples that the input can store
    batch_ring* batches = nullptr;
    batch_boundaries boundaries{};
    batch_numbers numbers{};                ///< for the positions of errors
    stage_passages* passages = nullptr;     ///< counts of the previous stages; may be null
    const damage_rule* damaged = nullptr;   ///< null if damage is an error
  };

  using worker_segment::add_to;
  void add_to(flow_statistics& f, std::uint64_t now_ns) const override;
  void start() override {}
  void space_freed() noexcept override { open_slots(); }   // a slot was freed
  dispatcher& tickets() noexcept override { return *dispatcher_; }
  std::exception_ptr early_damage() const noexcept override { return first_early_damage_; }
  std::uint64_t first_ticket() const noexcept override { return early_.size(); }

 protected:
  static constexpr std::size_t rendering = ~std::size_t{0};   // value of map_at_work while a row is rendered

  /// Properties of the columns and the maps.
  struct row_kind {
    std::size_t together;    ///< preferred number of tickets (samples) that a worker claims at once
    const char* rendering;   ///< the name of the rendering phase in metrics; null if the flow has no maps
  };

  batch_rows(const options& o, const row_kind& kind);
  ~batch_rows() override;

  std::size_t row_of(std::uint64_t batch, const row_ticket& of) const noexcept {
    return static_cast<std::size_t>(of.position - batch * rows_.rows);   // a remainder would need a slow division
  }
  /// Returns whether a slot has flags that mark valid rows and copied rows.
  bool has_flags() const noexcept { return damaged_.tolerates_damage() || rows_.pad_last; }

  /// Returns the position of a row in its epoch. If epochs have no fixed number of batches, returns the ticket.
  std::uint64_t position_of(const row_ticket& of) const noexcept;
  /// Returns the current exception with the location of the sample.
  std::exception_ptr located(const row_ticket& of) const noexcept;
  /// Stores the current exception with the batch, either as the error of the batch or as a damaged row.
  void fail(std::uint64_t batch, row_ticket& of) noexcept;
  /// Stores the next item of make_early(). Returns the stored item.
  early_row& add_early(early_row* row);
  /// Records a damaged sample of make_early(). Returns false, because a damaged sample does not define shapes.
  bool add_early_damage(const std::exception_ptr& error, bool in_later_epoch);
  /// Reports `count` finished rows. Closes the batch if all its rows are finished.
  void rows_done(std::uint64_t batch, std::size_t count) noexcept;

  const options rows_;
  const damage_rule damaged_;
  owner_list<early_row> early_{};        // index: position; constant after the workers have started
  owner_list<worker_rows> groups_;       // index: worker
  aligned_vector<phase_times> phases_;   // index: worker

 private:
  /// Pads ragged rows, and removes the gaps between the rows. Returns the used part of the slot.
  virtual slot_extent close_columns(std::uint64_t batch, std::byte* base, std::size_t rows) const noexcept = 0;
  virtual std::span<std::uint8_t> flags_at(std::byte* base) const noexcept = 0;
  virtual void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept = 0;
  virtual void clear_row(std::byte* base, std::size_t row) const noexcept = 0;

  /// Fills the rows of damaged samples and the rows without a sample, and sets the flags of all rows.
  void fill_rows(std::uint64_t batch, std::byte* base, std::size_t rows) noexcept;
  void set_key(std::uint64_t batch, const damaged_row& d, std::size_t donor) noexcept;

  const char* const rendering_name_;
  std::uint64_t early_damaged_ = 0;
  std::exception_ptr first_early_damage_{};
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/batch/impl/batch_rows.inl>
#endif
