// Predicts the speed of a run whose rows are prepared by feeders: other machines that send finished rows.
//
//   mr::flow_statistics f = run.statistics_after_warm_up();
//   f.receive_ns_per_byte = mr::measure_receiving();
//   const auto gain = mr::feeder_gain_of(f);
//   if (gain) std::puts(gain->text().c_str());      // "feeders: 3.6 times, needs 24 Gb/s and 17 cores ..."
//
// Without feeders, the workers prepare all rows. With feeders, the same cores also receive finished rows, and prepare
// rows in the remaining time. The speed is limited by the other stages (limits.hpp), and by the rate at which the cores
// can receive rows. The trainer still reads all samples, so the limit of reading applies. The size of a row is its size
// in the batch: u8 pixels need half of the bandwidth of f16. With TLS, receiving costs about three times as much.
// Errors: none; if a measurement is missing, the result is empty. Threads: any thread.
// Cost: measure_receiving() uses the processor for about 10 ms, the other functions for microseconds.
// Source: the utilization law, as in limits.hpp.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <optional>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

/// The predicted effect of feeders on a run.
struct feeder_gain {
  double times = 1;          ///< samples per second with enough feeders, relative to now; 1 without a gain
  double gbit_per_s = 0;     ///< network bandwidth for the rows that feeders send at this speed
  double feeder_cores = 0;   ///< cores of the feeders at this speed, if they are as fast as the trainer's cores
  double row_bytes = 0;      ///< mean size of a row in the batch
  double prepare_ns = 0;     ///< time of a worker to prepare a row
  double receive_ns = 0;     ///< time of a core to receive a row
  std::string next{};        ///< the limit at this speed: a stage, or "receiving"

  /// Returns text such as "feeders: 3.6 times, needs 24 Gb/s and 17 cores (a row of 151 kB costs 198 us here, and
  /// 55 us to receive)".
  std::string text() const;
};

/// Returns the gain of feeders for the rows that the workers prepare. Empty if the window lacks batches, the time of
/// the workers, the size of a row, or f.receive_ns_per_byte.
std::optional<feeder_gain> feeder_gain_of(const flow_statistics& f);

/// Measures the processor time, in nanoseconds, to receive a byte of a row. The byte is read from a TCP connection,
/// copied into a buffer, checked by CRC-32C, and copied into a slot. The process sends 16 MB to itself over the
/// loopback interface. The result does not include the interrupts of a network card. Returns 0 if no connection is
/// possible.
double measure_receiving();

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/feeders.inl>
#endif
