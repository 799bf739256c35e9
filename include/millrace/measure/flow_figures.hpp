// What a run measured in one window: all that the verdict, the predictions and the reports need to know.
//
//   mr::flow_figures window = now - before;                     // of one run, taken at two times
//   mr::verdict v = mr::judge(window);                          // report/verdict.hpp
//   const mr::stage_figures* copy = window.find(mr::stage_kind::copy);
//
// Stages stand in the order of the flow. Times are sums over the seats (threads) of a stage, in nanoseconds, so that
// busy + starved + blocked is seats x wall_ns at most. `starved` waited for input, `blocked` for room behind.
// Errors: none. Threads: a value. Source of the terms: Denning and Buzen, The Operational Analysis of Queueing Network
// Models (ACM Computing Surveys 10, 1978): utilisation = throughput x demand, outstanding = rate x latency (Little).
#pragma once

#include <millrace/measure/distribution.hpp>
#include <millrace/measure/read_levels.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

enum class stage_kind : std::uint8_t {
  read,     ///< waits for storage, on the I/O threads
  unpack,   ///< decompression on the I/O threads: processor time; its waits are counted with `read`
  work,     ///< the workers, or a serial stage's own thread
  copy,     ///< to device memory
  step      ///< the trainer: busy between two calls of next(), starved in next()
};

namespace detail {

/// In reports, and in their style sheet.
inline const char* name_of(stage_kind kind) noexcept {
  switch (kind) {
    case stage_kind::read: return "read";
    case stage_kind::unpack: return "unpack";
    case stage_kind::work: return "work";
    case stage_kind::copy: return "copy";
    case stage_kind::step: break;
  }
  return "step";
}

}  // namespace detail

/// A piece of a fused stage: "decode", "resize", "map".
struct phase_figures {
  std::string name{};
  std::uint64_t busy_ns = 0;
  distribution service_ns{};   ///< of one sample
};

/// One stage's times and counts.
struct stage_figures {
  std::string name{};
  stage_kind kind = stage_kind::work;
  std::size_t seats = 1;       ///< open at the end of the window
  bool on_workers = false;     ///< its seats are the workers', which tuning opens and closes (tune/tuning.hpp)
  std::uint64_t busy_ns = 0, starved_ns = 0, blocked_ns = 0;
  std::uint64_t cpu_ns = 0;    ///< processor time within busy_ns; 0: not measured
  std::uint64_t run_delay_ns = 0;   ///< of the rest of busy_ns, ready to run and without a core; as far as measured
  std::uint64_t items = 0;     ///< that passed
  double items_per_sample = 1;   ///< delivered; of the whole run, where stages expand, pack or filter
  std::uint64_t bytes = 0;     ///< that passed: encoded ones of a read, those of the batch in a copy
  distribution service_ns{};   ///< of one call: a read, a sample's work, a batch's copy or step
  std::vector<phase_figures> phases{};

  /// Of the time that was counted.
  double starved_share() const noexcept {
    const double all = static_cast<double>(busy_ns) + static_cast<double>(starved_ns) + static_cast<double>(blocked_ns);
    return all > 0 ? static_cast<double>(starved_ns) / all : 0;
  }
  /// What passed here, in samples as they are delivered. In a window that is not quite what was delivered: what lies
  /// between the stages grows and shrinks.
  double samples() const noexcept { return static_cast<double>(items) / items_per_sample; }
};

/// How full a bounded store was: slots, or bytes read ahead.
struct queue_figures {
  std::string name{};
  std::string unit{};
  double mean = 0;
  double bound = 0;
};

struct flow_figures {
  std::uint64_t wall_ns = 0;
  std::uint64_t batches = 0, samples = 0;   ///< delivered
  std::uint64_t warm_up_batches = 0;        ///< before the window, left out
  std::size_t batch_samples = 0;
  std::vector<stage_figures> stages{};
  distribution wait_ns{};                   ///< of each call of next()
  std::optional<std::uint64_t> device_gap_ns{};   ///< the device had no batch, by its own events; else next() counts
  read_levels reads_at_once{};              ///< time, reads and bytes by the number of reads outstanding
  /// Reading the part (shard) whose turn it is, for which all that lies behind has to wait, and what came of it.
  std::uint64_t in_turn_ns = 0, in_turn_samples = 0;
  std::uint64_t passed_on_samples = 0;      ///< by readers, in the run's order; 0: they do not take turns
  std::optional<std::uint64_t> storage_bytes{};   ///< of the bytes read, those that the page cache did not have
  double storage_ceiling_bytes_per_s = 0;   ///< measured or known beforehand; 0: unknown
  double copy_ceiling_bytes_per_s = 0;
  std::size_t usable_cores = 0;             ///< affinity and quota; 0: unknown
  std::uint64_t throttled_ns = 0;           ///< the cgroup's quota held the process back
  std::uint64_t process_cpu_ns = 0;         ///< of all threads of the process together; 0: unknown
  std::uint64_t run_delay_ns = 0;           ///< all threads of the process together were ready to run and did not
  std::size_t host_slots = 0, device_slots = 0;
  std::size_t read_ahead_bytes = 0;         ///< bound of what is read and not claimed
  std::vector<queue_figures> queues{};

  const stage_figures* find(stage_kind kind) const noexcept {
    for (const auto& s : stages)
      if (s.kind == kind) return &s;
    return nullptr;
  }
  /// Where most of what was passed on came from the part whose turn it was: the share of all other readers' work that
  /// came to be used, from 0 to 1/2. Nothing where readers help each other, where there is one, or where nobody knows.
  std::optional<double> useful_share_of_other_readers() const noexcept {
    const stage_figures* const read = find(stage_kind::read);
    if (!read || read->seats < 2 || in_turn_ns == 0 || in_turn_samples < 16 || passed_on_samples < 16) return {};
    const auto others = static_cast<double>(read->seats - 1);
    const double ahead = static_cast<double>(passed_on_samples) / static_cast<double>(in_turn_samples) - 1;
    if (ahead >= 0.5 * others) return {};
    return ahead > 0 ? ahead / others : 0;
  }
  double wall_s() const noexcept { return 1e-9 * static_cast<double>(wall_ns); }
  double samples_per_s() const noexcept { return wall_ns > 0 ? static_cast<double>(samples) / wall_s() : 0; }

  /// Share of its seats' whole time that a stage spent so.
  double share(const stage_figures& s, std::uint64_t ns) const noexcept {
    const double all = static_cast<double>(s.seats) * static_cast<double>(wall_ns);
    return all > 0 ? static_cast<double>(ns) / all : 0;
  }
  /// Share of the trainer's time without data.
  double data_wait_share() const noexcept {
    if (device_gap_ns && wall_ns > 0) return static_cast<double>(*device_gap_ns) / static_cast<double>(wall_ns);
    const stage_figures* const trainer = find(stage_kind::step);
    return trainer ? trainer->starved_share() : 0;
  }
};

namespace detail {

inline void saturating_sub(std::uint64_t& now, std::uint64_t before) noexcept { now -= now < before ? now : before; }

}  // namespace detail

/// What came since `before`, which the same run said earlier. Settings, ceilings and means of queues are the later
/// ones. A template only so that including it costs little.
template <class Figures>
  requires std::is_same_v<Figures, flow_figures>
Figures operator-(Figures now, const Figures& before) {
  using detail::saturating_sub;
  saturating_sub(now.wall_ns, before.wall_ns);
  saturating_sub(now.batches, before.batches);
  saturating_sub(now.samples, before.samples);
  now.warm_up_batches = before.warm_up_batches + before.batches;
  now.wait_ns -= before.wait_ns;
  saturating_sub(now.in_turn_ns, before.in_turn_ns);
  saturating_sub(now.in_turn_samples, before.in_turn_samples);
  saturating_sub(now.passed_on_samples, before.passed_on_samples);
  saturating_sub(now.process_cpu_ns, before.process_cpu_ns);
  saturating_sub(now.throttled_ns, before.throttled_ns);
  saturating_sub(now.run_delay_ns, before.run_delay_ns);
  if (now.device_gap_ns) saturating_sub(*now.device_gap_ns, before.device_gap_ns.value_or(0));
  if (now.storage_bytes) saturating_sub(*now.storage_bytes, before.storage_bytes.value_or(0));
  now.reads_at_once -= before.reads_at_once;
  for (std::size_t i = 0; i < now.stages.size() && i < before.stages.size(); ++i) {
    stage_figures& a = now.stages[i];
    const stage_figures& b = before.stages[i];
    saturating_sub(a.busy_ns, b.busy_ns);
    saturating_sub(a.starved_ns, b.starved_ns);
    saturating_sub(a.blocked_ns, b.blocked_ns);
    saturating_sub(a.cpu_ns, b.cpu_ns);
    saturating_sub(a.run_delay_ns, b.run_delay_ns);
    saturating_sub(a.items, b.items);
    saturating_sub(a.bytes, b.bytes);
    a.service_ns -= b.service_ns;
    std::uint64_t of_phases = 0;
    for (std::size_t p = 0; p < a.phases.size() && p < b.phases.size(); ++p) {
      saturating_sub(a.phases[p].busy_ns, b.phases[p].busy_ns);
      a.phases[p].service_ns -= b.phases[p].service_ns;
      of_phases += a.phases[p].busy_ns;
    }
    // Parts are shares of all the time so far, which may have moved: one that shrank took nothing, the others too much.
    if (of_phases <= a.busy_ns) continue;
    for (phase_figures& p : a.phases)
      p.busy_ns = static_cast<std::uint64_t>(static_cast<double>(p.busy_ns) * static_cast<double>(a.busy_ns) /
                                             static_cast<double>(of_phases));
  }
  return now;
}

}}  // namespace millrace
