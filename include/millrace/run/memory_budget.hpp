// How much memory a session will hold at most, and whether that fits. All of it is known before the first batch.
//
//   memory_budget m({.budget_bytes = 8 GiB, .slot_bytes = 38 MB, ...});
//   m.check();            // setup_error with the formula, if it does not fit
//   m.describe();         // "5 host slots x 38.5 MB + ... = 193 MB of 8.6 GB"
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// "38.5 MB", powers of ten, as disks and networks count.
template <class = void>
std::string readable_bytes(double bytes) {
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

/// A template only so that including it costs little.
template <class = void>
struct basic_memory_budget {
  std::size_t budget_bytes = 0;
  std::size_t slot_bytes = 0, host_slots = 0;
  std::size_t device_slots = 0;       ///< 0 where batches are used in the host slots
  bool device_memory_apart = false;   ///< device slots are not part of the budget: a GPU's own memory
  std::size_t batch_rows = 0;
  std::size_t read_ahead_bytes = 0;
  std::size_t chunk_bytes = 0;     ///< of one read, and a sample more
  std::size_t chunk_samples = 0;   ///< or so many, if these are less
  std::size_t window = 0;    ///< of shuffle, in samples
  double sample_bytes = 0;   ///< encoded, mean of those read so far
  std::size_t neighbour_bytes = 0;   ///< of small samples that are read with others, and whose turn has not come

  /// About half a window is held at a time.
  std::size_t window_bytes() const noexcept {
    return static_cast<std::size_t>(static_cast<double>(window) / 2 * sample_bytes);
  }
  /// Workers can only start on a batch whose samples are there, so one batch is read whatever the read-ahead.
  std::size_t encoded_bytes() const noexcept {
    return std::max(read_ahead_bytes, static_cast<std::size_t>(static_cast<double>(batch_rows) * sample_bytes));
  }
  std::size_t total_bytes() const noexcept {
    return (host_slots + (device_memory_apart ? 0 : device_slots)) * slot_bytes + encoded_bytes() + window_bytes() +
           neighbour_bytes;
  }

  /// That there is room for beside all this: each holds what it reads until that counts as read ahead, of which
  /// reads for later parts must leave half to those whose turn it is.
  std::size_t most_reads() const noexcept {
    const double one = std::min(static_cast<double>(chunk_bytes) + sample_bytes,
                                static_cast<double>(chunk_samples) * std::max(1.0, sample_bytes));
    const std::size_t left = budget_bytes - std::min(budget_bytes, total_bytes());
    return static_cast<std::size_t>(static_cast<double>(std::min(left, read_ahead_bytes / 2)) / one);
  }

  std::string describe() const {
    const auto times = [](std::size_t n, const char* what, std::size_t bytes) {
      return std::to_string(n) + " " + what + " x " + readable_bytes(static_cast<double>(bytes));
    };
    std::string text = times(host_slots, "host slots", slot_bytes);
    if (device_slots > 0 && !device_memory_apart) text += " + " + times(device_slots, "device slots", slot_bytes);
    text += " + read ahead " + readable_bytes(static_cast<double>(encoded_bytes()));
    if (window > 1) text += " + shuffle window " + std::to_string(window) + " / 2 x " + readable_bytes(sample_bytes);
    if (neighbour_bytes > 0)
      text += " + neighbours of samples read " + readable_bytes(static_cast<double>(neighbour_bytes));
    text += " = " + readable_bytes(static_cast<double>(total_bytes())) + " of " +
            readable_bytes(static_cast<double>(budget_bytes));
    if (device_memory_apart)
      text += "; on the device " + times(device_slots, "slots", slot_bytes) + " = " +
              readable_bytes(static_cast<double>(device_slots * slot_bytes));
    return text;
  }

  void check() const {
    if (total_bytes() <= budget_bytes) return;
    throw setup_error("this session would hold more memory than its budget: " + describe(),
                      "Use a smaller batch, prefetch or shuffle window, or raise session_options::memory_bytes");
  }
};
using memory_budget = basic_memory_budget<>;

}}  // namespace millrace
