// The limit of each stage: its maximum speed if no other stage limited it, in delivered samples per second.
//
//   mr::flow_limits l = mr::detail::limits_of(statistics);
//   l.lowest().samples_per_s;   l.lowest().name;      // the limit that determines the speed
//   l.margin();                                       // the second lowest limit, divided by the lowest
//   mr::detail::limits_of(statistics, {.workers = 1.25});        // with a quarter more workers
//
// The limit of a stage, where n is the number of delivered samples (utilization law):
// - step: n / (time between calls of next()). If device_gap_ns is set: n / (busy time of the device).
// - copy and work: n x threads / (busy time of the threads)
// - unpack: n x threads / (time of reading and unpacking). This is the speed of the I/O threads.
// - read: n / (time with at least one outstanding read). This speed is then scaled from the measured number of
//   outstanding reads to one outstanding read per thread (read_levels.hpp).
// - in turn: one thread reads the shard that is next in the order, while the other threads read later shards. If less
//   than half of the other threads' work is used, the limit is the speed of the one thread plus the used share of the
//   speed of the others.
//
// Errors: none; a stage that was never busy has no limit and is omitted. Threads: not synchronized.
// Source of the law: see flow_statistics.hpp.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// The speed of the run if only this stage limited it.
struct stage_limit {
  std::size_t stage = 0;   ///< index in flow_statistics::stages
  std::string name{};
  stage_kind kind = stage_kind::work;
  double samples_per_s = 0;
  bool in_turn = false;   ///< whether the limit is the one thread that reads the next shard in the order
};

/// The limits of all stages, lowest first.
struct flow_limits {
  std::vector<stage_limit> all{};

  /// Returns true if no stage has a limit.
  bool empty() const noexcept { return all.empty(); }
  /// Returns the lowest limit. Requires that empty() is false.
  const stage_limit& lowest() const noexcept { return all.front(); }
  /// Returns the ratio of the second lowest limit to the lowest; infinity if only one stage has a limit.
  double margin() const noexcept;
  /// Returns the lowest limit of the stages of this kind; null if none of them has a limit.
  const stage_limit* find(stage_kind kind) const noexcept;
  /// Returns true if the limit of reading is the one thread that reads the next shard in the order.
  bool reads_in_turn() const noexcept;
};

namespace detail {

/// Factors that change the setup of a run; 1 changes nothing.
struct predicted_flow_change {
  double workers = 1, io_threads = 1, storage_speed = 1;
  double step_time = 1, copy_time = 1;   ///< time per sample
  double work_time = 1;                  ///< time per sample in the stages that `stage` selects
  std::size_t stage = ~std::size_t{0};   ///< index in flow_statistics::stages; the default selects all stages of the
                                         ///< kinds work and unpack

  /// Returns the factor for the work time of the stage with that index.
  double work_time_of(std::size_t index) const noexcept;
};

/// Returns the limit of reading. This is the lowest of three limits:
/// - the I/O threads, which alternate between reading and unpacking
/// - the storage
/// - the one thread that reads the next shard in the order
stage_limit reading_limit(const flow_statistics& f, std::size_t index, const predicted_flow_change& c);

/// Returns the limits of all stages, with the change `c`.
flow_limits limits_of(const flow_statistics& f, const predicted_flow_change& c = {});

}   // namespace detail

// Predicts the speed of a run whose rows are prepared by feeders: other machines that send finished rows.
//
//   mr::flow_statistics f = run.statistics_after_warm_up();
//   f.receive_ns_per_byte = mr::measure_receiving();
//   const auto gain = mr::feeder_gain_of(f);
//   if (gain) std::puts(gain->text().c_str());      // "feeders: 3.6 times, needs 24 Gb/s and 17 cores ..."
//
// Without feeders, the workers prepare all rows. With feeders, the same cores also receive finished rows, and prepare
// rows in the remaining time. The speed is limited by the other stages (flow_limits), and by the rate at which cores
// can receive rows. The training machine still reads all samples, so the limit of reading applies. The size of a row is
// its size in the batch: u8 pixels need half of the bandwidth of f16. With TLS, receiving costs about three times as
// much.
// Errors: none; if a measurement is missing, the result is empty. Threads: any thread.
// Cost: measure_receiving() uses the processor for about 10 ms, the other functions for microseconds.
// Source: the utilization law, as for flow_limits.

/// The predicted effect of feeders on a run.
struct feeder_gain {
  double times = 1;          ///< predicted speed with enough feeders, divided by the current speed; 1 without a gain
  double gbit_per_s = 0;     ///< network bandwidth for the rows that feeders send at this speed
  double feeder_cores = 0;   ///< feeder cores that this speed needs, if they are as fast as the local cores
  double row_bytes = 0;      ///< mean size of a row in the batch
  double prepare_ns = 0;     ///< time of a worker to prepare a row
  double receive_ns = 0;     ///< time of a core to receive a row
  std::string next{};        ///< the limit at this speed: a stage, or "receiving"

  /// Returns text such as "feeders: 3.6 times, needs 24 Gb/s and 17 cores (a row of 151 kB costs 198 us here, and
  /// 55 us to receive)".
  std::string text() const;
};

/// Returns the predicted gain of feeders. Returns nothing if `f` has fewer than 5 batches. Also returns nothing if the
/// time of the workers, the size of a row, or f.receive_ns_per_byte is 0.
std::optional<feeder_gain> feeder_gain_of(const flow_statistics& f);

/// Measures the processor time, in nanoseconds, to receive a byte of a row. The byte is read from a TCP connection,
/// copied into a buffer, checked by CRC-32C, and copied into a slot. The process sends 16 MB to itself over the
/// loopback interface. The result does not include the interrupts of a network card. Returns 0 if no connection is
/// possible.
double measure_receiving();

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/limits.inl>
#endif
