// Implements a ring with a fixed number of slots (a slot is the memory of a host batch). The ring assigns slots to
// batches and manages the state of each slot.
//
//   FREE -> FILLING(batch, missing rows) -> READY -> IN_USE (leased, or its copy is under way) -> FREE
//
//   mr::detail::batch_ring ring;
//   ring.start({.rows = 256, .memory = pieces});
//   ring.open_free();                   // assigns FREE slots to batches; returns the number of batches opened so far
//   ring.data(batch);                   // workers write rows here ...
//   if (ring.rows_done(batch, 2)) ring.set_ready(batch);   // ... and report them; READY after the last row
//   const auto got = ring.take(batch);  // trainer or stager, in ascending order; if not_yet, retry when bell() rings
//   if (got.what == mr::detail::batch_ring::outcome::ready) ring.free(got.batch.slot);   // any thread, in any order
//
// A slot is assigned to a batch when the batch opens. Slots may be freed in any order. If `fixed` is true, batch n
// opens only when slot n % count is free, even if other slots are free.
// Errors: if several samples of a batch have errors, the error of the lowest position becomes the error of the batch.
// Therefore the same data cause the same error. Threads: any thread may call any member. No member waits.
#pragma once

#include <millrace/base/address_sanitizer.hpp>
#include <millrace/item/column/slot_contents.hpp>
#include <millrace/sync/doorbell.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A row whose sample is damaged, for runs that tolerate damage.
struct damaged_row {
  std::size_t row = 0;
  std::exception_ptr error{};
  bool replaced = false;   ///< whether the row contains a copy of another row
};

/// A batch that is ready, or an error in place of the batch.
struct ready_batch {
  std::size_t slot = 0;
  std::byte* data = nullptr;
  std::uint64_t batch = 0;
  std::uint64_t epoch = 0;
  std::size_t rows = 0;       ///< rows with samples; below options::rows only in a short last batch or with bucket()
  std::uint64_t digest = 0;   ///< sum of the digests of the rows, modulo 2^64
  slot_extent extent{};
  std::exception_ptr error{};
  const std::string_view* keys = nullptr;   ///< keys of the rows; null unless options::keys is set
  std::vector<damaged_row> damaged{};       ///< in row order
};

/// The ring of host batches.
class batch_ring {
 public:
  /// Options of start().
  struct options {
    std::size_t rows = 1;               ///< rows per batch
    std::vector<std::byte*> memory{};   ///< one memory block per slot; owned by the caller
    std::size_t slot_bytes = 0;         ///< size of a block
    bool fixed = false;                 ///< if true, batch n uses slot n % count
    bool keys = false;                  ///< whether each batch contains the keys of its rows
  };
  static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

  /// Sets up the slots. Must be called once, when the size of a batch is known. Before this call, no batch can open,
  /// but set_end(), mark_epoch_start() and stop() may be called.
  void start(const options& o);

  std::size_t count() const noexcept { return slots_.size(); }

  /// Assigns every FREE slot to the next batch that has no slot. Returns the number of batches opened so far.
  std::uint64_t open_free();

  /// Returns the memory of an open batch. Only a worker that has claimed a ticket (the number of a row in the session)
  /// of the batch may call the functions from data() to set_ready().
  std::byte* data(std::uint64_t batch) noexcept { return at(batch).data; }
  batch_keys& keys(std::uint64_t batch) noexcept { return at(batch).keys; }
  void set_epoch(std::uint64_t batch, std::uint64_t epoch) noexcept { at(batch).epoch = epoch; }
  void add_void_rows(std::uint64_t batch, std::size_t n) noexcept {
    at(batch).void_rows.fetch_add(n, std::memory_order_relaxed);
  }
  void add_digest(std::uint64_t batch, std::uint64_t of_rows) noexcept {
    if (of_rows != 0) at(batch).digest.fetch_add(of_rows, std::memory_order_relaxed);
  }
  /// Records the error for a sample. The error with the lowest position becomes the error of the batch.
  void fail(std::uint64_t batch, std::uint64_t position, std::exception_ptr error) noexcept;

  /// Records a damaged sample of a run that tolerates damage. The row of the sample is filled when the batch is closed.
  void add_damaged(std::uint64_t batch, damaged_row row);
  /// Returns the damaged rows of a batch that is being closed, in row order.
  std::vector<damaged_row>& damaged(std::uint64_t batch);

  /// Reports `n` finished rows. Returns true if these were the last rows of the batch. If true is returned, the caller
  /// must close the batch (work/batch/batch_rows.hpp) and call set_ready().
  bool rows_done(std::uint64_t batch, std::size_t n) noexcept {
    return at(batch).to_come.fetch_sub(n, std::memory_order_acq_rel) == n;
  }
  /// Returns whether a batch has an error. All rows of the batch must be done.
  bool failed(std::uint64_t batch) const noexcept { return at(batch).error != nullptr; }
  /// Returns the number of rows of a batch that have a sample. All rows of the batch must be done.
  std::size_t rows_of(std::uint64_t batch) const noexcept {
    return rows_ - at(batch).void_rows.load(std::memory_order_relaxed);
  }
  /// Sets the state of a batch to READY. Must be called after the last row is done.
  void set_ready(std::uint64_t batch, const slot_extent& extent = {});

  /// Marks the first batch of an epoch.
  void mark_epoch_start(std::uint64_t batch);
  /// Sets the end of the run: `batch` is the number of the first batch that does not exist.
  void set_end(std::uint64_t batch);
  /// Stops the ring. Batches that are not ready yet will never become ready.
  void stop();

  enum class outcome { ready, end, epoch_end, stopped, not_yet };

  /// The result of take(): a batch, or the reason why it is not available.
  struct take_result {
    outcome what = outcome::not_yet;
    ready_batch batch{};
  };

  /// Returns a READY batch and sets its state to IN_USE. If the batch is not available, returns the reason. If
  /// `stop_at_epoch` is true, does not return a batch that is marked as the first batch of an epoch.
  take_result take(std::uint64_t batch, bool stop_at_epoch = false);

  /// Swaps the keys in a slot with `with`. take() must have returned the batch in this slot. The next batch in the slot
  /// reuses the memory of `with`.
  void swap_keys(std::size_t slot_index, batch_keys& with) noexcept { slots_[slot_index].keys.swap(with); }

  /// Returns whether the outcome of take() would differ from `not_yet`.
  bool can_take(std::uint64_t batch) const;
  bool starts_epoch(std::uint64_t batch) const;
  /// Returns the first batch of the epoch that contains `batch`. Returns nothing if no mark of this epoch exists.
  std::optional<std::uint64_t> epoch_start_of(std::uint64_t batch) const;
  /// Removes the marks of epochs that ended before `batch`.
  void forget_epochs_before(std::uint64_t batch);

  /// Returns the doorbell that rings whenever the result of take() or starts_epoch() may change.
  doorbell& bell() noexcept { return bell_; }

  /// Allows access to the memory of all slots, so that the owner of the memory can free it.
  void allow_access_to_all() noexcept {
    for (const slot& s : slots_) allow_address_access(s.data, slot_bytes_);
  }

  /// Sets the state of a slot to FREE. The caller must then call open_free() and notify the dispatcher (the object that
  /// assigns work to workers).
  void free(std::size_t slot_index) noexcept;

  /// Returns whether this batch waits for a free slot. take() must have returned all earlier batches.
  bool waits_for_slot(std::uint64_t batch) const;

  std::size_t in_use() const noexcept;
  std::size_t ready() const noexcept;

 private:
  struct slot {
    std::byte* data = nullptr;
    std::uint64_t batch = unknown, epoch = 0, error_position = unknown;
    std::atomic<std::size_t> to_come{0}, void_rows{0};
    std::atomic<std::uint64_t> digest{0};
    slot_extent extent{};
    batch_keys keys;
    std::exception_ptr error;
    std::vector<damaged_row> damaged;
    bool ready = false;
  };

  const slot& at(std::uint64_t batch) const noexcept { return slots_[slot_of_[batch % slots_.size()]]; }
  slot& at(std::uint64_t batch) noexcept { return slots_[slot_of_[batch % slots_.size()]]; }

  std::vector<std::size_t>::const_iterator free_slot_for_locked(std::uint64_t batch) const;
  bool starts_epoch_locked(std::uint64_t batch) const;

  std::size_t rows_ = 0, slot_bytes_ = 0;
  bool fixed_ = false;
  mutable std::mutex mutex_;
  doorbell bell_;
  std::vector<slot> slots_;
  std::vector<std::size_t> slot_of_;   // slot of each open batch, by batch number % count
  std::vector<std::size_t> free_;
  std::vector<std::uint64_t> epoch_starts_;
  std::uint64_t opened_ = 0;
  std::uint64_t end_batch_ = unknown;
  std::size_t in_use_ = 0, ready_count_ = 0;
  bool stopped_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sync/impl/batch_ring.inl>
#endif
