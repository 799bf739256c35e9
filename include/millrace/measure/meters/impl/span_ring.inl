// Definitions for span_ring.hpp.
#pragma once

#include <millrace/measure/meters/span_ring.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::vector<span_ring::span> span_ring::snapshot() const {
  const std::uint64_t count = count_.load(std::memory_order_acquire);
  std::uint64_t first = count > most ? count - most : 0;
  std::vector<span> all;
  for (std::uint64_t at = first; at < count; ++at) {
    const entry& e = entries_[at % most];
    all.push_back({e.start_ns.load(std::memory_order_acquire), e.end_ns.load(std::memory_order_acquire),
                   e.number.load(std::memory_order_acquire)});
  }
  // Adds 1, because the recording thread may already be writing the next entry.
  const std::uint64_t now = count_.load(std::memory_order_acquire) + 1;
  const std::uint64_t lost = now > most && now - most > first ? std::min(now - most - first, count - first) : 0;
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(lost));
  return all;
}

MILLRACE_RARE void add_spans(timeline& t, std::string name, const char* what, const std::vector<span_ring::span>& of,
                             std::uint64_t start) {
  const std::uint32_t track = t.add_track(std::move(name));
  const auto since_start = [start](std::uint64_t at) { return static_cast<std::int64_t>(at - start); };
  for (const span_ring::span& s : of)
    if (s.start_ns >= start) t.spans.push_back({track, what, since_start(s.start_ns), since_start(s.end_ns), s.number});
}

}}}   // namespace millrace::detail
