// Before the first batch, computes the maximum memory of a session, and compares this maximum with the budget.
//
//   mr::detail::memory_budget m{.budget_bytes = std::size_t{8} << 30, .slot_bytes = 40'000'000, .host_slots = 5};
//   m.read_ahead_bytes = 64'000'000;
//   m.check();            // setup_error with the formula, if the session does not fit
//   m.describe();         // "5 host slots x 40 MB + read ahead 64 MB = 264 MB of 8.6 GB"
//
// Errors: setup_error from check(). Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns bytes as text: "3.8 MB", "38 MB". Units are powers of ten, as for disks and networks.
std::string memory_text(double bytes);

/// The parts of a session's memory, and their sum.
struct memory_budget {
  std::size_t budget_bytes = 0;
  std::size_t slot_bytes = 0, host_slots = 0;
  std::size_t device_slots = 0;       ///< 0 if the training step uses the batches in the host slots
  bool device_memory_apart = false;   ///< whether device slots are in GPU memory, which the budget does not limit
  std::size_t batch_rows = 0;
  std::size_t read_ahead_bytes = 0;
  std::size_t chunk_bytes = 0;     ///< a read ends with the sample that reaches this number of bytes
  std::size_t chunk_samples = 0;   ///< maximum number of samples of one read
  std::size_t window = 0;          ///< samples of the shuffle window
  bool withholds = false;          ///< whether the run may withhold all samples until the window is full
  double sample_bytes = 0;         ///< mean encoded size of the samples read so far
  /// Maximum bytes of samples that are read early, because they are stored next to a requested sample.
  std::size_t neighbor_bytes = 0;

  /// Returns the default number of batches to prefetch on the host, from 2 to 16. The number is higher for small
  /// batches.
  static std::size_t default_prefetch(std::size_t batch_bytes) noexcept;

  /// Returns the bytes of half the shuffle window, because about half of it is in memory at a time. If `withholds` is
  /// set and the complete window fits in the budget, returns the bytes of the complete window.
  std::size_t window_bytes() const noexcept;
  /// Returns the maximum bytes of encoded samples in memory: `read_ahead_bytes` or the bytes of one batch's samples,
  /// whichever is more. The workers start on a batch only after all its samples have been read.
  std::size_t encoded_bytes() const noexcept;
  /// Returns the bytes that count against the budget.
  std::size_t total_bytes() const noexcept;

  /// Returns the maximum number of concurrent reads. The total bytes of these reads exceed neither the unused part of
  /// the budget nor half of `read_ahead_bytes`.
  std::size_t max_reads() const noexcept;

  /// Returns the formula with its numbers, for the notice at the start and for errors.
  std::string describe() const;

  /// Throws setup_error if the total exceeds the budget.
  void check() const;

 private:
  bool fits_complete_window() const noexcept;
  std::size_t other_bytes() const noexcept;   // all bytes except the bytes of the window
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/memory_budget.inl>
#endif
