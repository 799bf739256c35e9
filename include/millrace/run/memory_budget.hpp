// The most memory that a session will hold, and whether it fits the budget. All is known before the first batch.
//
//   mr::detail::memory_budget m{.budget_bytes = std::size_t{8} << 30, .slot_bytes = 40'000'000, .host_slots = 5};
//   m.read_ahead_bytes = 64'000'000;
//   m.check();            // setup_error with the formula, if it does not fit
//   m.describe();         // "5 host slots x 40 MB + read ahead 64 MB = 264 MB of 8.6 GB"
//
// Errors: setup_error from check(). Threads: a value.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns bytes as text: "3.8 MB", "38 MB". Units are powers of ten, as for disks and networks.
inline std::string readable_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, bytes < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

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
  double sample_bytes = 0;   ///< mean encoded size of the samples read so far
  std::size_t neighbor_bytes = 0;   ///< small samples that were read together with others, ahead of their turn

  /// Returns the bytes of the shuffle window. About half a window is held at a time.
  std::size_t window_bytes() const noexcept {
    return static_cast<std::size_t>(static_cast<double>(window) / 2 * sample_bytes);
  }
  /// Returns the bytes of encoded samples. At least one batch is read, whatever the read-ahead: workers can start
  /// on a batch only when its samples are there.
  std::size_t encoded_bytes() const noexcept {
    return std::max(read_ahead_bytes, static_cast<std::size_t>(static_cast<double>(batch_rows) * sample_bytes));
  }
  /// Returns the bytes that count against the budget.
  std::size_t total_bytes() const noexcept {
    return (host_slots + (device_memory_apart ? 0 : device_slots)) * slot_bytes + encoded_bytes() + window_bytes() +
           neighbor_bytes;
  }

  /// Returns the number of concurrent reads that fit beside the total. Each read holds its bytes until they count as
  /// read ahead. Reads of later shards must leave half of the read-ahead to the shards whose turn it is.
  std::size_t max_reads() const noexcept {
    const double one = std::min(static_cast<double>(chunk_bytes) + sample_bytes,
                                static_cast<double>(chunk_samples) * std::max(1.0, sample_bytes));
    const std::size_t left = budget_bytes - std::min(budget_bytes, total_bytes());
    return static_cast<std::size_t>(static_cast<double>(std::min(left, read_ahead_bytes / 2)) / one);
  }

  /// Returns the formula with its numbers, for the announcement and for errors.
  std::string describe() const {
    const auto times = [](std::size_t n, const char* what, std::size_t bytes) {
      return std::to_string(n) + " " + what + " x " + readable_bytes(static_cast<double>(bytes));
    };
    std::string text = times(host_slots, "host slots", slot_bytes);
    if (device_slots > 0 && !device_memory_apart) text += " + " + times(device_slots, "device slots", slot_bytes);
    text += " + read ahead " + readable_bytes(static_cast<double>(encoded_bytes()));
    if (window > 1) text += " + shuffle window " + std::to_string(window) + " / 2 x " + readable_bytes(sample_bytes);
    if (neighbor_bytes > 0)
      text += " + neighbours of samples read " + readable_bytes(static_cast<double>(neighbor_bytes));
    text += " = " + readable_bytes(static_cast<double>(total_bytes())) + " of " +
            readable_bytes(static_cast<double>(budget_bytes));
    if (device_memory_apart)
      text += "; on the device " + times(device_slots, "slots", slot_bytes) + " = " +
              readable_bytes(static_cast<double>(device_slots * slot_bytes));
    return text;
  }

  /// Throws setup_error if the total exceeds the budget.
  void check() const {
    if (total_bytes() <= budget_bytes) return;
    throw setup_error("this session would hold more memory than its budget: " + describe(),
                      "Use a smaller batch, prefetch or shuffle window, or raise session_options::memory_bytes");
  }
};

}}}  // namespace millrace::detail
