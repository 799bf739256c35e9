// Definitions for pipeline_model.hpp.
#pragma once

#include <millrace/report/simulate/pipeline_model.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::size_t pipeline_model::useful_readers(std::size_t threads) const noexcept {
  return threads == 0 ? 0 : 1 + static_cast<std::size_t>(useful_share * static_cast<double>(threads - 1) + 0.5);
}

MILLRACE_INLINE pipeline_model model_of(const flow_statistics& f) {
  pipeline_model m;
  const auto per = [](std::uint64_t ns, std::uint64_t count) {
    return count > 0 ? static_cast<double>(ns) / static_cast<double>(count) : 0;
  };
  m.batch_samples = f.batch_samples > 0 ? f.batch_samples : 1;
  const auto batch = static_cast<double>(m.batch_samples);
  m.host_slots = f.host_slots > 0 ? f.host_slots : m.host_slots;
  if (f.read_ahead_bytes > 0) m.read_ahead_bytes = f.read_ahead_bytes;
  for (const stage_statistics& s : f.stages) {
    switch (s.kind) {
      case stage_kind::read: {
        const std::uint64_t reads = s.service_ns.count();
        m.useful_share = f.useful_share_of_other_readers().value_or(1);
        m.io_threads = m.useful_readers(s.concurrency);
        if (reads > 0) m.samples_per_read = std::max<std::size_t>(1, (s.items + reads / 2) / reads);
        m.sample_bytes = per(s.bytes, s.items);
        m.contention = f.reads_at_once.contention().value_or(0);
        // The sum of the times of single reads: the time with any read outstanding, times the combined speed of the
        // reads.
        const double alone_ns = f.reads_at_once.busy_ns() > 0 ? static_cast<double>(f.reads_at_once.busy_ns()) *
                                                                    f.reads_at_once.mean_speed(m.contention)
                                                              : static_cast<double>(s.busy_ns);
        const double read_count = per(s.items, m.samples_per_read);
        m.read_ns = empirical_distribution(s.service_ns).with_mean(read_count > 0 ? alone_ns / read_count : 0);
        break;
      }
      case stage_kind::unpack:
        m.unpack_ns = empirical_distribution(s.service_ns)
                          .with_mean(per(s.busy_ns, s.items) * static_cast<double>(m.samples_per_read));
        break;
      case stage_kind::work:
        if (&s != f.find(stage_kind::work)) break;
        m.workers = s.concurrency;
        m.work_ns = empirical_distribution(s.service_ns).with_mean(per(s.busy_ns, s.items) * s.items_per_sample);
        for (const auto& p : s.phases) m.phases.emplace_back(p.name, per(p.busy_ns, s.busy_ns));
        break;
      case stage_kind::copy:
        m.device_slots = std::max<std::size_t>(1, f.device_slots);
        m.batch_bytes = per(s.bytes, s.items) * s.items_per_sample * batch;
        m.copy_ns =
            empirical_distribution(s.service_ns).with_mean(per(s.busy_ns, s.items) * s.items_per_sample * batch);
        break;
      case stage_kind::step:
        m.step_ns = empirical_distribution(s.service_ns)
                        .with_mean(per(f.device_gap_ns ? f.wall_ns - *f.device_gap_ns : s.busy_ns, s.items) * batch);
        break;
    }
  }
  return m;
}

}}}  // namespace millrace::detail
