// The input of the simulation: the setup of a run, and the time of each operation.
//
//   mr::detail::pipeline_model m = mr::detail::model_of(window);      // the recorded run
//   m.workers = 8;
//   mr::detail::simulated then = mr::detail::simulate(m);             // report/simulate/what_if.hpp
//
// I/O threads read `samples_per_read` samples at a time, and at most `read_ahead_bytes` ahead. Workers render each
// sample into a row of a batch in one of `host_slots` slots. Each complete batch is copied to one of `device_slots`
// slots on the device. If `device_slots` is 0, no batch is copied, and the training step uses the host slots.
// Times are in nanoseconds. `read_ns` and `unpack_ns` are times per read. `work_ns` is the time per sample. `copy_ns`
// and `step_ns` are times per batch. If only a share of the I/O threads' work is used (`useful_share`), the model has
// fewer I/O threads than the run. The model omits serial stages on separate threads, and assumes that each thread has a
// core.
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/measure/values/distribution.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A distribution from which the simulation draws service times. The times were recorded in a run, or are specified.
// Each draw selects a bucket of the histogram with a probability proportional to its count, then a uniform value in the
// bucket. The mean of the distribution is exactly the mean of the recorded times. Unit: nanoseconds. If no time was
// recorded, each draw returns 0. Objects are immutable.

/// A distribution of service times, in nanoseconds.
class empirical_distribution {
 public:
  empirical_distribution() = default;
  /// Creates a distribution with the shape and the mean of a recorded histogram.
  explicit empirical_distribution(const distribution& recorded) {
    double middles = 0, before = 0;
    for (std::size_t i = 0; i < distribution::buckets; ++i) {
      if (recorded.bucket(i) == 0) continue;
      const auto count = static_cast<double>(recorded.bucket(i));
      const auto first = static_cast<double>(distribution::first_of(i));
      // Values are integers. Therefore a bucket of width 1 has only its first value.
      const double width = static_cast<double>(distribution::first_of(i + 1) - 1) - first;
      pieces_.push_back({before += count, first, width});
      middles += count * (first + width / 2);
    }
    if (middles > 0) mean_ = middles / before;
    if (middles > 0) *this = with_mean(recorded.mean());
  }
  /// Returns a distribution whose draws all return `ns`.
  static empirical_distribution fixed(double ns) { return around(ns, 0); }
  /// Returns a uniform distribution from mean x (1 - spread) to mean x (1 + spread).
  static empirical_distribution around(double mean_ns, double spread) {
    empirical_distribution r;
    r.pieces_ = {{1, mean_ns * (1 - spread), 2 * mean_ns * spread}};
    r.mean_ = mean_ns;
    return r;
  }

  /// Returns true if no time was recorded.
  bool empty() const noexcept { return mean_ <= 0; }
  /// Returns the mean, in nanoseconds.
  double mean() const noexcept { return mean_ * scale_; }

  /// Returns the distribution with each value multiplied by `factor`.
  empirical_distribution scaled(double factor) const {
    empirical_distribution r = *this;
    r.scale_ *= factor;
    return r;
  }
  /// Returns a distribution of the same shape with the mean `ns`. If no time was recorded, returns fixed(ns).
  empirical_distribution with_mean(double ns) const { return empty() ? fixed(ns) : scaled(ns / mean()); }

  /// Draws one value, in nanoseconds.
  double at(rng& random) const noexcept {
    if (empty()) return 0;
    const double position = random.uniform() * pieces_.back().until;
    const auto match = std::upper_bound(pieces_.begin(), pieces_.end() - 1, position,
                                        [](double w, const auto& p) { return w < p.until; });
    return scale_ * (match->first + random.uniform() * match->width);
  }

 private:
  struct piece {
    double until;   // sum of the counts up to and including this piece
    double first, width;
  };
  std::vector<piece> pieces_;
  double mean_ = 0, scale_ = 1;
};

/// The setup and the service times of a run.
struct pipeline_model {
  std::size_t io_threads = 4, workers = 4, host_slots = 4, device_slots = 0;
  std::size_t batch_samples = 64;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;
  std::size_t samples_per_read = 1;
  double sample_bytes = 100'000;
  double batch_bytes = 0;    ///< size of a batch; one copy transfers it
  double contention = 0;     ///< 0 if each concurrent read adds speed, 1 if none does (measure/values/read_levels.hpp)
  double useful_share = 1;   ///< see flow_statistics::useful_share_of_other_readers(); 1 if unknown
  empirical_distribution read_ns{}, unpack_ns{}, work_ns{}, copy_ns{}, step_ns{};
  std::vector<std::pair<std::string, double>> phases{};   ///< phases of the work: names, and shares of its time
  std::uint64_t warm_up_batches = 20, batches = 200;      ///< `batches` batches are measured after the warm-up
  std::uint64_t seed = 1;
  bool with_timeline = false;

  /// Returns the number of I/O threads in the model if the run has `threads` I/O threads: one, plus `useful_share` of
  /// the others.
  std::size_t useful_readers(std::size_t threads) const noexcept {
    return threads == 0 ? 0 : 1 + static_cast<std::size_t>(useful_share * static_cast<double>(threads - 1) + 0.5);
  }
};

/// Returns the model of a recorded run. Each distribution has the shape of the recorded histogram and the mean of the
/// recorded times. The mean of `read_ns` is the time without contention. If the contention of reads is unknown, the
/// model has no contention.
inline pipeline_model model_of(const flow_statistics& f) {
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
        // The total time that the reads need without contention.
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

}}}   // namespace millrace::detail
