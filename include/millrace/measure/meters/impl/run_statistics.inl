// Definitions for run_statistics.hpp.
#pragma once

#include <millrace/measure/meters/run_statistics.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void add_reading(flow_statistics& f, const reading_counts& c) {
  const std::uint64_t all_ns = c.open_ns, read_ns = std::min(c.reads.busy_ns, all_ns);
  const std::uint64_t busy_ns = std::clamp(c.busy_ns, read_ns, all_ns);
  stage_statistics read{.name = "read", .kind = stage_kind::read, .concurrency = c.threads, .busy_ns = read_ns};
  read.blocked_ns = all_ns - busy_ns;
  read.items = c.samples;
  read.bytes = c.metered ? c.reads.bytes : c.bytes;
  read.service_ns = c.reads.service_ns;
  f.stages.push_back(std::move(read));
  f.reads_at_once = c.reads.levels;
  f.in_turn_ns = c.in_turn_ns;
  f.in_turn_samples = c.in_turn_samples;
  f.passed_on_samples = c.passed_on;
  if (!c.metered) return;
  stage_statistics unpack{
      .name = "unpack", .kind = stage_kind::unpack, .concurrency = c.threads, .busy_ns = busy_ns - read_ns};
  unpack.starved_ns = read_ns;
  unpack.blocked_ns = read.blocked_ns;
  unpack.items = c.samples;
  unpack.bytes = c.bytes;
  f.stages.push_back(std::move(unpack));
}

MILLRACE_INLINE void complete(flow_statistics& f, const process_statistics& process) {
  double items_per_sample = 1;
  for (std::size_t i = f.stages.size(); i-- > 0;) {
    stage_statistics& s = f.stages[i];
    // Until here, the member is the number of items of this stage per item of the next stage.
    s.items_per_sample = items_per_sample *= s.items_per_sample;
  }
  f.usable_cores = usable_cores();
  f.process_cpu_ns = process.cpu_ns;
  f.throttled_ns = process.throttled_ns;
  f.run_delay_ns = process.run_delay_ns;
  const stage_statistics* const read = f.find(stage_kind::read);
  if (!read || !process.storage_bytes || read->bytes == 0) return;
  // The kernel does not count the reads of some file systems (FUSE, 9p). In that case the count is near 0, although the
  // bytes arrived too slowly to be from memory. Then storage_bytes stays unset.
  const double bytes_per_ns = static_cast<double>(read->bytes) / (static_cast<double>(read->busy_ns) + 1);
  const bool counted = *process.storage_bytes * 20 >= read->bytes || bytes_per_ns > 0.2;
  if (counted) f.storage_bytes = std::min(*process.storage_bytes, read->bytes);
}

MILLRACE_INLINE flow_statistics warm_up_statistics::without(flow_statistics f) const {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = all_.size(); i-- > 0;)
    if (f.batches >= 4 * all_[i].batches) return std::move(f) - all_[i];
  return f;
}

}}}   // namespace millrace::detail
