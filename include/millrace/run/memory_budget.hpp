// The most memory that a session will hold, and whether it fits the budget. All is known before the first batch.
//
//   mr::detail::memory_budget m{.budget_bytes = std::size_t{8} << 30, .slot_bytes = 40'000'000, .host_slots = 5};
//   m.read_ahead_bytes = 64'000'000;
//   m.check();            // setup_error with the formula, if it does not fit
//   m.describe();         // "5 host slots x 40 MB + read ahead 64 MB = 264 MB of 8.6 GB"
//
// Errors: setup_error from check(). Threads: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns bytes as text: "3.8 MB", "38 MB". Units are powers of ten, as for disks and networks.
std::string readable_bytes(double bytes);

/// The items of a session's memory and their sum.
struct memory_budget {
  std::size_t budget_bytes = 0;
  std::size_t slot_bytes = 0, host_slots = 0;
  std::size_t device_slots = 0;       ///< 0: the step uses the batches in the host slots
  bool device_memory_apart = false;   ///< device slots lie in a GPU's own memory, outside the budget
  std::size_t batch_rows = 0;
  std::size_t read_ahead_bytes = 0;
  std::size_t chunk_bytes = 0;     ///< bytes of one read; the last sample may exceed them
  std::size_t chunk_samples = 0;   ///< samples of one read, if these are fewer bytes
  std::size_t window = 0;    ///< samples of the shuffle window
  bool withholds = false;    ///< all of them are held at the beginning of the run
  double sample_bytes = 0;   ///< mean encoded size of the samples read so far
  std::size_t neighbor_bytes = 0;   ///< small samples that were read together with others, ahead of their turn

  /// Returns how many batches to prefetch on the host, if the user does not say: 2 to 4 in 64 MiB, and up to 16 small
  /// ones in 1 MiB. With more of them the trainer and the workers wake each other less often; more bytes would push the
  /// samples out of the cache.
  static std::size_t default_prefetch(std::size_t batch_bytes) noexcept;

  /// Returns the bytes of the shuffle window. About half a window is held at a time. At the beginning of a run it may
  /// be the complete one, where the budget has room for it.
  std::size_t window_bytes() const noexcept;
  /// Returns the bytes of encoded samples. At least one batch is read, whatever the read-ahead: workers can start
  /// on a batch only when its samples are there.
  std::size_t encoded_bytes() const noexcept;
  /// Returns the bytes that count against the budget.
  std::size_t total_bytes() const noexcept;

  /// Returns the number of concurrent reads that fit beside the total. Each read holds its bytes until they count as
  /// read ahead. Reads of later shards must leave half of the read-ahead to the shards whose turn it is.
  std::size_t max_reads() const noexcept;

  /// Returns the formula with its numbers, for the announcement and for errors.
  std::string describe() const;

  /// Throws setup_error if the total exceeds the budget.
  void check() const;

 private:
  bool holds_complete_window() const noexcept;
  std::size_t other_bytes() const noexcept;   // all but the window
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/memory_budget.inl>
#endif
