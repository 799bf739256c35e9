// Computes the position in the epoch for each row in the batches of a session.
//
//   const mr::detail::batch_numbers numbers{.first_epoch = 3, .first_batch = 20, .epoch_batches = 100,
//                                           .rows = 64, .mine = {.rank = 1, .size = 4}};
//   const auto where = numbers.of(5);                        // the session's sixth batch: batch 25 of epoch 3
//   numbers.position(where, 2);                              // position of the third row: (25 * 64 + 2) * 4 + 1
//
// Positions count the rows of all ranks from the beginning of an epoch. If the size of the global batches is the same,
// global batch n of an epoch has the same positions on any number of ranks.
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/item/world.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The epoch of a batch, and the number of the batch in that epoch.
struct batch_number {
  std::uint64_t epoch = 0, batch = 0;
  friend bool operator==(const batch_number&, const batch_number&) = default;
};

/// The state of a run at the start of a session. This state determines the numbers of all later batches.
struct batch_numbers {
  std::uint64_t first_epoch = 0;   ///< epoch of the resume point
  std::uint64_t first_batch = 0;   ///< batches of first_epoch that were delivered before the resume point
  /// Batches of an epoch. 0 if an epoch is one pass over the data, whose length is known only at its end.
  std::uint64_t epoch_batches = 0;
  std::size_t rows = 1;   ///< rows of a full batch of one rank
  world mine{};
  /// Distance, in positions, between two rows that are mixed with each other (mixup, cutmix). 0 if rows are not mixed.
  std::size_t stride = 0;

  /// Returns the epoch and the number of the session's batch `batch` (from 0). Requires epochs with a fixed number of
  /// batches.
  batch_number of(std::uint64_t batch) const noexcept {
    const std::uint64_t number = first_batch + batch;
    return {first_epoch + number / epoch_batches, number % epoch_batches};
  }
  /// Returns the number of a batch if each epoch is one pass. `epoch` is the epoch of the batch's samples. `start` is
  /// the number of the epoch's first batch, counted from the start of the session. `start` is empty for the epoch with
  /// which the session begins.
  batch_number of(std::uint64_t batch, std::uint64_t epoch, std::optional<std::uint64_t> start) const noexcept {
    // If the resume point is at the end of a pass, first_epoch and first_batch refer to that pass. The session then
    // begins with the next epoch, at batch 0.
    return {epoch, start ? batch - *start : batch + (epoch == first_epoch ? first_batch : 0)};
  }
  /// Returns the position of a row of this rank in its epoch.
  std::uint64_t position(const batch_number& in, std::size_t row) const noexcept {
    return (in.batch * rows + row) * mine.size + mine.rank;
  }
  /// Returns the stride in rows of one rank.
  std::size_t own_stride() const noexcept { return stride / mine.size; }
};

}}}   // namespace millrace::detail
