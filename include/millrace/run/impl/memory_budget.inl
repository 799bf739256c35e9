// Definitions for memory_budget.hpp.
#pragma once

#include <millrace/run/memory_budget.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string memory_text(double bytes) {
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

MILLRACE_RARE std::size_t memory_budget::default_prefetch(std::size_t batch_bytes) noexcept {
  constexpr std::size_t mib = std::size_t{1} << 20;
  const auto fit_into = [&](std::size_t bytes) { return bytes / std::max<std::size_t>(1, batch_bytes); };
  return std::clamp<std::size_t>(fit_into(mib), std::clamp<std::size_t>(fit_into(64 * mib), 2, 4), 16);
}

MILLRACE_RARE std::size_t memory_budget::window_bytes() const noexcept {
  return static_cast<std::size_t>(static_cast<double>(window) / (fits_complete_window() ? 1 : 2) * sample_bytes);
}

MILLRACE_RARE bool memory_budget::fits_complete_window() const noexcept {
  const double bytes = static_cast<double>(window) * sample_bytes;
  return withholds && static_cast<double>(other_bytes()) + bytes <= static_cast<double>(budget_bytes);
}

MILLRACE_RARE std::size_t memory_budget::other_bytes() const noexcept {
  return (host_slots + (device_memory_apart ? 0 : device_slots)) * slot_bytes + encoded_bytes() + neighbor_bytes;
}

MILLRACE_RARE std::size_t memory_budget::encoded_bytes() const noexcept {
  return std::max(read_ahead_bytes, static_cast<std::size_t>(static_cast<double>(batch_rows) * sample_bytes));
}

MILLRACE_RARE std::size_t memory_budget::total_bytes() const noexcept { return other_bytes() + window_bytes(); }

MILLRACE_RARE std::size_t memory_budget::max_reads() const noexcept {
  const double one = std::min(static_cast<double>(chunk_bytes) + sample_bytes,
                              static_cast<double>(chunk_samples) * std::max(1.0, sample_bytes));
  const std::size_t left = budget_bytes - std::min(budget_bytes, total_bytes());
  return static_cast<std::size_t>(static_cast<double>(std::min(left, read_ahead_bytes / 2)) / one);
}

MILLRACE_RARE std::string memory_budget::describe() const {
  const auto times = [](std::size_t n, const char* item, std::size_t bytes) {
    return std::to_string(n) + " " + item + " x " + memory_text(static_cast<double>(bytes));
  };
  std::string text = times(host_slots, "host slots", slot_bytes);
  if (device_slots > 0 && !device_memory_apart) text += " + " + times(device_slots, "device slots", slot_bytes);
  text += " + read ahead " + memory_text(static_cast<double>(encoded_bytes()));
  if (window > 1)
    text += " + shuffle window " + std::to_string(window) + (fits_complete_window() ? " x " : " / 2 x ") +
            memory_text(sample_bytes);
  if (neighbor_bytes > 0) text += " + neighbors of samples " + memory_text(static_cast<double>(neighbor_bytes));
  text += " = " + memory_text(static_cast<double>(total_bytes())) + " of " +
          memory_text(static_cast<double>(budget_bytes));
  if (device_memory_apart)
    text += "; on the device " + times(device_slots, "slots", slot_bytes) + " = " +
            memory_text(static_cast<double>(device_slots * slot_bytes));
  return text;
}

MILLRACE_RARE void memory_budget::check() const {
  if (total_bytes() <= budget_bytes) return;
  throw setup_error("this session would use more memory than its budget: " + describe(),
                    "Use a smaller batch, prefetch or shuffle window, or raise session_options::memory_bytes");
}

}}}   // namespace millrace::detail
