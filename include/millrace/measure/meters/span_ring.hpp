// Stores the last work spans of one thread for a trace. Recording is always enabled and never waits.
//
//   ring.record({.start_ns = t0, .end_ns = t1, .number = batch});             // the owner thread
//   for (const mr::detail::span_ring::span& s : ring.snapshot()) draw(s);     // any thread; oldest first
//
// The ring stores 512 spans in 12 KiB. Errors: none. Threads: one thread at a time records; any thread may create
// snapshots. A snapshot omits spans that were overwritten during its creation.
#pragma once

#include <millrace/measure/values/timeline.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The last spans of one thread.
class span_ring {
 public:
  static constexpr std::size_t most = 512;

  struct span {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint64_t number = ~std::uint64_t{0};   ///< number of the batch; by default, no batch
  };

  void record(const span& s) noexcept {
    const std::uint64_t at = count_.load(std::memory_order_relaxed);
    entry& e = entries_[at % most];
    e.start_ns.store(s.start_ns, std::memory_order_release);
    e.end_ns.store(s.end_ns, std::memory_order_release);
    e.number.store(s.number, std::memory_order_release);
    count_.store(at + 1, std::memory_order_release);
  }

  std::vector<span> snapshot() const;

 private:
  struct entry {
    std::atomic<std::uint64_t> start_ns{0}, end_ns{0}, number{0};
  };
  std::array<entry, most> entries_;
  std::atomic<std::uint64_t> count_{0};
};

/// Adds the last spans of a thread to a new track. Spans before `start`, the start of the run, are omitted.
void add_spans(timeline& t, std::string name, const char* what, const std::vector<span_ring::span>& of,
               std::uint64_t start);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/meters/impl/span_ring.inl>
#endif
