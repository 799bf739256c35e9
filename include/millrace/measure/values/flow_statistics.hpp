// Contains the measurements of a run in one window (the time between two snapshots). The verdict (which part of the run
// limits its speed), the predictions and the reports use these measurements as input.
//
//   const mr::flow_statistics before = run.statistics();
//   train_one_epoch(run);
//   const mr::flow_statistics window = run.statistics() - before;
//   const mr::verdict v = mr::judge(window);                    // report/verdict/verdict.hpp
//   const mr::stage_statistics* copy = window.find(mr::stage_kind::copy);
//
// Stages are in the order of the flow. Times are sums over the threads of a stage, in nanoseconds. Therefore busy +
// starved + blocked is at most concurrency * wall_ns, where `concurrency` is the number of threads. A starved thread
// waits for input; a blocked thread waits for space in the next stage. Errors: none. Threads: not synchronized.
// Source of the terms: Denning and Buzen, The Operational Analysis of Queueing Network Models (ACM Computing Surveys
// 10, 1978). Utilization = throughput x demand; outstanding = rate x latency (Little).
#pragma once

#include <millrace/measure/values/distribution.hpp>
#include <millrace/measure/values/read_levels.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// The kind of a stage.
enum class stage_kind : std::uint8_t {
  read,     ///< the I/O threads wait for storage
  unpack,   ///< processor time of the I/O threads, such as decompression
  work,     ///< work of the workers, or of the thread of a serial stage
  copy,     ///< copies to device memory
  step      ///< the trainer, which is busy between two calls of next() and starved in next()
};

/// The measurements of one phase of a segment (stages that run together), such as "decode", "resize" or "map".
struct phase_statistics {
  std::string name{};
  std::uint64_t busy_ns = 0;
  distribution service_ns{};   ///< time per sample
};

/// The times and counts of one stage.
struct stage_statistics {
  std::string name{};
  stage_kind kind = stage_kind::work;
  std::size_t concurrency = 1;   ///< number of active threads at the end of the window
  bool on_workers = false;       ///< whether the stage runs on the workers, whose number mr::tuning() changes
  std::uint64_t busy_ns = 0, starved_ns = 0, blocked_ns = 0;
  std::uint64_t cpu_ns = 0;         ///< processor time within busy_ns; 0 if not measured
  std::uint64_t run_delay_ns = 0;   ///< part of busy_ns in which threads waited for a core, if measured
  std::uint64_t items = 0;          ///< items that passed the stage
  double items_per_sample = 1;      ///< items per delivered sample over the entire run; 1 without expand, pack, filter
  std::uint64_t bytes = 0;          ///< bytes that passed the stage: encoded bytes of reads, or bytes of copied batches
  distribution service_ns{};        ///< time per operation: a read, the work on a sample, the copy or step of a batch
  std::vector<phase_statistics> phases{};

  /// Returns the starved time as a share of the sum of busy, starved and blocked time.
  double starved_share() const noexcept;
  /// Returns the number of items that passed the stage, converted to samples.
  double samples() const noexcept { return static_cast<double>(items) / items_per_sample; }
};

/// The mean fill level of a bounded buffer, such as slots or prefetched bytes.
struct queue_statistics {
  std::string name{};
  std::string unit{};
  double mean = 0;
  double bound = 0;
};

/// The measurements of a run in one window.
struct flow_statistics {
  std::uint64_t wall_ns = 0;
  std::uint64_t batches = 0, samples = 0;   ///< number of delivered batches and samples
  std::uint64_t warm_up_batches = 0;        ///< number of batches delivered before the window
  std::size_t batch_samples = 0;
  std::uint64_t delivered_bytes = 0;   ///< size of the delivered batches in host memory
  std::vector<stage_statistics> stages{};
  distribution wait_ns{};                         ///< time of each call of next()
  std::optional<std::uint64_t> device_gap_ns{};   ///< time in which the device had no batch; unset if not measured
  read_levels reads_at_once{};                    ///< time, reads and bytes for each number of outstanding reads
  /// Time spent on reading the shard that is next in the order, and the number of samples read in this time. Samples of
  /// later shards are not passed on before this shard ends.
  std::uint64_t in_turn_ns = 0, in_turn_samples = 0;
  std::uint64_t passed_on_samples = 0;            ///< samples sent to the next stage in order; 0 without a fixed order
  std::optional<std::uint64_t> storage_bytes{};   ///< bytes read that were not in the page cache
  double storage_ceiling_bytes_per_s = 0;         ///< maximum speed of the storage; 0 if unknown
  double copy_ceiling_bytes_per_s = 0;
  double receive_ns_per_byte = 0;     ///< processor time per byte from feeders (other machines); 0 if unknown
  std::size_t usable_cores = 0;       ///< cores by affinity and quota; 0 if unknown
  std::uint64_t throttled_ns = 0;     ///< time in which the cgroup's quota throttled the process
  std::uint64_t process_cpu_ns = 0;   ///< processor time, summed over all threads of the process; 0 if unknown
  std::uint64_t run_delay_ns = 0;     ///< time in which threads waited for a core, summed over all threads
  std::size_t host_slots = 0, device_slots = 0;
  std::size_t read_ahead_bytes = 0;   ///< limit of the bytes that are read, but not yet claimed by a worker
  std::vector<queue_statistics> queues{};

  /// Returns the first stage of this kind, or null.
  const stage_statistics* find(stage_kind kind) const noexcept;
  /// While one reader (I/O thread) reads the next shard in the order, the other readers read later shards. Returns the
  /// useful share of their reading: 1 if each of them contributes as many samples as the first reader, 0 if they
  /// contribute none. The result is empty if the share is 1/2 or more, or unknown.
  std::optional<double> useful_share_of_other_readers() const noexcept;
  /// Returns the length of the window in seconds. samples_per_s() returns the number of delivered samples per second.
  double wall_s() const noexcept { return 1e-9 * static_cast<double>(wall_ns); }
  double samples_per_s() const noexcept { return wall_ns > 0 ? static_cast<double>(samples) / wall_s() : 0; }

  /// Returns `ns` divided by the total time of all threads of stage `s`.
  double share(const stage_statistics& s, std::uint64_t ns) const noexcept;
  /// Returns the share of the trainer's time that is spent waiting for data.
  double data_wait_share() const noexcept;
};

namespace detail {

/// Returns the name of a kind, as used in reports and in their style sheet.
const char* name_of(stage_kind kind) noexcept;

inline void saturating_sub(std::uint64_t& now, std::uint64_t before) noexcept { now -= now < before ? now : before; }

}   // namespace detail

/// Returns the measurements since `before`, an earlier snapshot of the same run. Copies settings, ceilings and means of
/// queues from `now`.
template <class Figures>
  requires std::is_same_v<Figures, flow_statistics>
Figures operator-(Figures now, const Figures& before) {
  using detail::saturating_sub;
  saturating_sub(now.wall_ns, before.wall_ns);
  saturating_sub(now.batches, before.batches);
  saturating_sub(now.samples, before.samples);
  saturating_sub(now.delivered_bytes, before.delivered_bytes);
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
    stage_statistics& a = now.stages[i];
    const stage_statistics& b = before.stages[i];
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
    // The busy_ns of a phase is an estimate: a share of the stage's busy_ns since the start of the run. A later
    // estimate may be lower. Then the phase has 0 ns in the window, and the other phases are scaled down to the stage's
    // busy_ns.
    if (of_phases <= a.busy_ns) continue;
    for (phase_statistics& p : a.phases)
      p.busy_ns = static_cast<std::uint64_t>(static_cast<double>(p.busy_ns) * static_cast<double>(a.busy_ns) /
                                             static_cast<double>(of_phases));
  }
  return now;
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/flow_statistics.inl>
#endif
