// How fast each stage could go if nothing else held it back, in delivered samples per second.
//
//   mr::detail::flow_limits l = mr::detail::limits_of(figures);
//   l.lowest().samples_per_s;   l.lowest().name;      // the limit that binds
//   l.margin();                                       // the next lowest over the lowest
//   mr::detail::limits_of(figures, {.workers = 1.25});        // with a quarter more workers
//
// By the utilization law a stage can do n x threads / b: its threads were busy for b seconds with n samples.
//   step      n / time between calls of next(); with events of the device n / (wall - gaps)
//   copy      n x threads / copying          work    n x threads / working
//   unpack    n x threads / (reading + unpacking)      what the I/O threads can do
//   read      n / time with a read outstanding, x speed with all threads reading / speed as it was (read_levels.hpp),
//             but no more than the I/O threads can do
//   in turn   n / time reading the shard whose turn it is, if most samples come from it: the speed of its one reader.
//             What other threads read ahead of later shards meanwhile makes nothing faster.
// The busy time of threads alone would count the queue on one disk as capacity. The time with a read outstanding alone
// would mistake slow answers for full bandwidth.
// Errors: none; a stage that was never busy has no limit and is left out. Threads: a value.
// Source of the law: see flow_figures.hpp.
#pragma once

#include <millrace/measure/flow_figures.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Factors that change the setup of a run; 1 is no change.
struct flow_change {
  double workers = 1, io_threads = 1, storage_speed = 1;
  double step_time = 1, copy_time = 1;   ///< time per sample
  double work_time = 1;                  ///< time per sample in `stage`, or in all stages
  std::size_t stage = ~std::size_t{0};   ///< index in flow_figures::stages; default: all

  /// Returns the factor of the work time of the stage with that index.
  double work_time_of(std::size_t index) const noexcept {
    return stage == index || stage == ~std::size_t{0} ? work_time : 1;
  }
};

/// The speed of the run if this stage alone limited it.
struct stage_limit {
  std::size_t stage = 0;   ///< index in flow_figures::stages
  std::string name{};
  stage_kind kind = stage_kind::work;
  double samples_per_s = 0;
  bool in_turn = false;    ///< reading: one shard after the other, by one thread each
};

/// The limits of all stages, lowest first.
struct flow_limits {
  std::vector<stage_limit> all{};

  /// Returns true if no stage has a limit.
  bool empty() const noexcept { return all.empty(); }
  /// Returns the limit that binds. Not to be called if empty().
  const stage_limit& lowest() const noexcept { return all.front(); }
  /// Returns the second lowest limit over the lowest; infinity if there is only one.
  double margin() const noexcept {
    return all.size() > 1 ? all[1].samples_per_s / all[0].samples_per_s : std::numeric_limits<double>::infinity();
  }
  /// Returns the lowest limit of that kind, or null.
  const stage_limit* find(stage_kind kind) const noexcept {
    for (const auto& l : all)
      if (l.kind == kind) return &l;
    return nullptr;
  }
  /// Returns true if the shard whose turn it is limits reading.
  bool reads_in_turn() const noexcept {
    return std::any_of(all.begin(), all.end(), [](const auto& l) { return l.in_turn; });
  }
};

/// Returns the limit of the I/O threads, on which reading and unpacking take turns. Storage may be slower than they
/// are, or the one thread that reads what all others wait for.
inline stage_limit reading_limit(const flow_figures& f, std::size_t index, const flow_change& c) {
  const stage_figures& read = f.stages[index];
  const double samples = read.samples(), threads = static_cast<double>(read.concurrency) * c.io_threads;
  const double reading_s = 1e-9 * static_cast<double>(read.busy_ns) / c.storage_speed;
  double all_ns = static_cast<double>(read.busy_ns);   // without the change
  stage_limit out{index, read.name, stage_kind::read, 0, false};
  double unpacking_s = 0;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    if (f.stages[i].kind != stage_kind::unpack) continue;
    unpacking_s += 1e-9 * static_cast<double>(f.stages[i].busy_ns) * c.work_time_of(i);
    all_ns += static_cast<double>(f.stages[i].busy_ns);
    if (unpacking_s > reading_s) out = {i, f.stages[i].name, stage_kind::unpack, 0, false};
  }
  if (reading_s + unpacking_s <= 0) return out;
  out.samples_per_s = samples * threads / (reading_s + unpacking_s);
  stage_limit in_turn = out;
  in_turn.in_turn = true;

  const double storage_busy_s = 1e-9 * static_cast<double>(f.reads_at_once.busy_ns()) / c.storage_speed;
  if (storage_busy_s > 0) {
    // Unknown contention: the run did not show other numbers of reads. More threads add at most in proportion.
    const std::optional<double> contention = f.reads_at_once.contention();
    double faster = contention ? read_levels::speed(threads, *contention) / f.reads_at_once.mean_speed(*contention)
                               : std::max(1.0, c.io_threads);
    if (f.storage_ceiling_bytes_per_s > 0 && read.bytes > 0) {
      const double speed = static_cast<double>(read.bytes) / storage_busy_s;
      faster = std::min(faster, std::max(1.0, f.storage_ceiling_bytes_per_s * c.storage_speed / speed));
    }
    const double storage = samples / storage_busy_s * faster;
    if (storage < out.samples_per_s) out = {index, read.name, stage_kind::read, storage, false};
  }

  const std::optional<double> useful = f.useful_share_of_other_readers();
  if (!useful) return out;
  const double in_turn_s = static_cast<double>(f.in_turn_ns) * (reading_s + unpacking_s) / all_ns;
  const double one = static_cast<double>(f.in_turn_samples) / read.items_per_sample / in_turn_s;
  in_turn.samples_per_s = one * (1 + *useful * (threads - 1));
  // Prefers this limit if both are about as low: it names the reason.
  if (in_turn.samples_per_s >= 1.1 * out.samples_per_s) return out;
  in_turn.samples_per_s = std::min(in_turn.samples_per_s, out.samples_per_s);
  return in_turn;
}

/// Returns the limits of all stages, with the change `c`.
inline flow_limits limits_of(const flow_figures& f, const flow_change& c = {}) {
  flow_limits found;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    const stage_figures& s = f.stages[i];
    stage_limit l{i, s.name, s.kind, 0, false};
    double busy_s = 1e-9 * static_cast<double>(s.busy_ns);
    auto concurrency = static_cast<double>(s.concurrency);
    switch (s.kind) {
      case stage_kind::read: l = detail::reading_limit(f, i, c); break;
      case stage_kind::unpack: continue;   // part of the limit of read
      case stage_kind::work:
        if (s.concurrency > 1 || f.find(stage_kind::work) == &s) concurrency *= c.workers;
        busy_s *= c.work_time_of(i);
        break;
      case stage_kind::copy: busy_s *= c.copy_time; break;
      case stage_kind::step:
        if (f.device_gap_ns) busy_s = f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns);
        busy_s *= c.step_time;
        break;
    }
    if (s.kind != stage_kind::read && busy_s > 0) l.samples_per_s = s.samples() * concurrency / busy_s;
    if (l.samples_per_s > 0) found.all.push_back(l);
  }
  std::stable_sort(found.all.begin(), found.all.end(),
                   [](const auto& a, const auto& b) { return a.samples_per_s < b.samples_per_s; });
  return found;
}

}}}  // namespace millrace::detail
