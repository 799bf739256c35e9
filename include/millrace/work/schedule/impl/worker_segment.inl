// Definitions for worker_segment.hpp.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/work/schedule/worker_segment.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE worker_segment::worker_segment(const options& o)
    : name_(o.name),
      span_name_(o.span_name),
      scratch_(o.claims.max_workers),
      dispatcher_(make_aligned_shared<dispatcher>(*this, o.claims)) {
  dispatcher_->attach(o.workers);
}

MILLRACE_INLINE void worker_segment::add_to(timeline& t, std::uint64_t start_ns) const {
  dispatcher_->add_spans(t, span_name_, start_ns);
}

MILLRACE_INLINE void worker_segment::count_into(event_counts& counts) noexcept {
  for (auto& s : scratch_) s.count_into(counts);
}

MILLRACE_INLINE std::string worker_segment::waits(std::uint64_t now_ns) const {
  return std::string(name_) + ": " + dispatcher_->waits(now_ns);
}

MILLRACE_RARE worker_segment::~worker_segment() = default;

}}}   // namespace millrace::detail
