// Event counts: counts, by name, of events that are worth knowing but are no error (skipped members, accepted damage).
//
//   s.count("progressive JPEGs");                    // in render(row, s) of a column; `s` is a mr::scratch
//   for (const auto& c : run.stats().counts) std::cout << c.what << ": " << c.times << '\n';
//
// A name is a string literal, because only its address is kept; equal texts share one count. At most 48 names; the
// events of further names are counted as "other". A line of text may be left to be shown to the user; only the first
// line is kept.
// Errors: none. Threads: any number may count and read at once; counting neither waits nor allocates.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The name of an event, and how often the event occurred.
struct event_count {
  const char* what = "";
  std::uint64_t times = 0;
};

/// Counts events by name.
class event_counts {
 public:
  void count(const char* what, std::uint64_t times = 1) noexcept;

  /// Leaves a line to be shown to the user, cut after 499 bytes. Does nothing if there is a line already.
  void tell(std::string_view line) noexcept;
  /// Returns the line to the first caller, then null; null if there is none. The text lives as long as this object.
  const char* take_line() noexcept;

  /// Returns all counts, in the order in which the names first occurred.
  std::vector<event_count> counts() const;

 private:
  struct entry {
    std::atomic<const char*> what{nullptr};
    std::atomic<std::uint64_t> times{0};
  };
  std::array<entry, 48> entries_{};
  std::atomic<std::uint64_t> other_{0};
  enum class news : std::uint8_t { none, written, told, taken };
  std::atomic<news> news_{news::none};
  std::array<char, 500> line_{};
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/event_counts.ipp>
#endif
