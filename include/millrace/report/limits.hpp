// How fast each stage could go if nothing else held it back, in delivered samples per second.
//
//   mr::flow_limits l = mr::limits_of(figures);
//   l.lowest().samples_per_s;   l.lowest().name;      // what binds
//   l.margin();                                       // the next lowest over the lowest
//   mr::limits_of(figures, {.workers = 1.25});        // with a quarter more workers
//
// By the utilisation law a stage whose seats were busy for b seconds with n samples can do n x seats / b:
//   step      n / time between calls of next(), or, where the device's events are there, n / (wall - gaps)
//   copy      n x seats / copying            work    n x seats / working
//   unpack    n x threads / (reading + unpacking)      what the I/O threads can do
//   read      n / time with a read outstanding, x speed with all threads reading / speed as it was (read_levels.hpp),
//             but no more than the I/O threads can do
//   in turn   n / time reading the part (shard) whose turn it is, where most samples come from that one: its reader's
//             speed, for what others read ahead of later parts meanwhile makes nothing faster
// Threads' busy time alone would count the queueing on one disk as if it were capacity; time with at least one read
// outstanding alone would take a slow answer for a full pipe. Errors: none; a stage never busy has no limit, and is
// left out. Threads: a value. Source of the law: as flow_figures.hpp says.
#pragma once

#include <millrace/measure/flow_figures.hpp>

#include <algorithm>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI {

/// Factors on how a run was set up; 1 is as it was.
struct flow_change {
  double workers = 1, io_threads = 1, storage_speed = 1;
  double step_time = 1, copy_time = 1;   ///< of a sample
  double work_time = 1;                  ///< of a sample in `stage`, or in all
  std::size_t stage = ~std::size_t{0};   ///< index in flow_figures::stages

  double work_time_of(std::size_t index) const noexcept {
    return stage == index || stage == ~std::size_t{0} ? work_time : 1;
  }
};

/// How fast a run would be if one stage alone limited it.
struct stage_limit {
  std::size_t stage = 0;   ///< index in flow_figures::stages
  std::string name{};
  stage_kind kind = stage_kind::work;
  double samples_per_s = 0;
  bool in_turn = false;    ///< of reading: one part after the other, by one reader each
};

/// In rising order.
struct flow_limits {
  std::vector<stage_limit> all{};

  bool empty() const noexcept { return all.empty(); }
  const stage_limit& lowest() const noexcept { return all.front(); }
  double margin() const noexcept {
    return all.size() > 1 ? all[1].samples_per_s / all[0].samples_per_s : std::numeric_limits<double>::infinity();
  }
  const stage_limit* find(stage_kind kind) const noexcept {
    for (const auto& l : all)
      if (l.kind == kind) return &l;
    return nullptr;
  }
  bool reads_in_turn() const noexcept {
    return std::any_of(all.begin(), all.end(), [](const auto& l) { return l.in_turn; });
  }
};

namespace detail {

/// Of the I/O threads: reading and unpacking take turns on them, and storage may have less to give, or the one thread
/// that reads what all wait for.
inline stage_limit reading_limit(const flow_figures& f, std::size_t index, const flow_change& c) {
  const stage_figures& read = f.stages[index];
  const double samples = read.samples(), threads = static_cast<double>(read.seats) * c.io_threads;
  const double reading_s = 1e-9 * static_cast<double>(read.busy_ns) / c.storage_speed;
  double all_ns = static_cast<double>(read.busy_ns);   // as it was
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
    // Unknown contention: nothing is said about numbers of reads that were not seen, but that more add no more than
    // that.
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
  // Of two about as low ones this is the one that says why.
  if (in_turn.samples_per_s >= 1.1 * out.samples_per_s) return out;
  in_turn.samples_per_s = std::min(in_turn.samples_per_s, out.samples_per_s);
  return in_turn;
}

}  // namespace detail

inline flow_limits limits_of(const flow_figures& f, const flow_change& c = {}) {
  flow_limits found;
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    const stage_figures& s = f.stages[i];
    stage_limit l{i, s.name, s.kind, 0, false};
    double busy_s = 1e-9 * static_cast<double>(s.busy_ns);
    auto seats = static_cast<double>(s.seats);
    switch (s.kind) {
      case stage_kind::read: l = detail::reading_limit(f, i, c); break;
      case stage_kind::unpack: continue;   // with read
      case stage_kind::work:
        if (s.seats > 1 || f.find(stage_kind::work) == &s) seats *= c.workers;
        busy_s *= c.work_time_of(i);
        break;
      case stage_kind::copy: busy_s *= c.copy_time; break;
      case stage_kind::step:
        if (f.device_gap_ns) busy_s = f.wall_s() - 1e-9 * static_cast<double>(*f.device_gap_ns);
        busy_s *= c.step_time;
        break;
    }
    if (s.kind != stage_kind::read && busy_s > 0) l.samples_per_s = s.samples() * seats / busy_s;
    if (l.samples_per_s > 0) found.all.push_back(l);
  }
  std::stable_sort(found.all.begin(), found.all.end(),
                   [](const auto& a, const auto& b) { return a.samples_per_s < b.samples_per_s; });
  return found;
}

}}  // namespace millrace
