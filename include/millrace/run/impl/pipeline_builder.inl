// Definitions for pipeline_builder.hpp.
#pragma once

#include <millrace/run/pipeline_builder.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::vector<pipeline_node*> built_segments::nodes() const {
  std::vector<pipeline_node*> all;
  for (std::size_t i = segments_.size(); i-- > 0;) all.push_back(segments_.get(i));
  return all;
}

MILLRACE_INLINE batch_rows::options built_segments::last_options(const batch_options& o, unsigned own_threads) {
  const worker_counts s = workers_for(own_threads);
  return {.rows = o.size,
          .drop_last = drops_last(o),
          .pad_last = o.pad_last,
          .keys = o.keys,
          .max_workers = s.count,
          .workers = s.workers,
          .ring_capacity = std::max(2 * o.size, max_waiting_rows()),
          .batches = batches_,
          .boundaries = options_.boundaries,
          .numbers = options_.numbers,
          .passages = &passages_,
          .damaged = options_.damaged};
}

MILLRACE_INLINE built_segments::worker_counts built_segments::workers_for(unsigned own_threads) {
  if (options_.workers == 0) return {1, nullptr};
  if (own_threads == 0) return {options_.workers, options_.arena};
  own_threads_.push_back(make_owner<thread_executor>(own_threads));
  return {own_threads, own_threads_.get(own_threads_.size() - 1)};
}

MILLRACE_RARE built_segments::built_segments(const options& o, batch_ring& batches) : options_(o), batches_(&batches) {}

MILLRACE_RARE built_segments::~built_segments() = default;

MILLRACE_INLINE void built_segments::reserve_place() { segments_.push_back(nullptr); }

MILLRACE_INLINE void built_segments::own(pipeline_node* segment) noexcept {
  segments_.set_last(owner<pipeline_node>(segment));
}

}}}   // namespace millrace::detail
