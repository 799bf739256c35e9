// Predicts the effect of other settings on a recorded run, without another run.
//
//   mr::prediction p = mr::what_if(window, {.workers = 8});
//   p.samples_per_s;  p.gain;  p.then.sentence();              // then: the verdict after the change
//   mr::what_if(window, {.prefetch = 8, .storage_speed = 0.25, .step_time = 2});
//   mr::simulated_gains(window);                                // the gain of each setting, by simulation
//
// The run is simulated twice, without and with the change (flow_simulation). The measured speed is multiplied by the
// ratio of the two simulated speeds. If the batch size changes, the times of copies and steps are assumed to change in
// proportion. Only `fixed_step_ns` of each step is assumed to stay constant.
// Errors: setup_error for a setting of 0, and for a factor that is 0, negative or not finite. Only the factor step_time
// may be 0.
// Threads: the function is pure; any thread may call it.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/report/simulate/pipeline_model.hpp>
#include <millrace/report/verdict/knobs.hpp>
#include <millrace/report/verdict/verdict.hpp>

#include <deque>
#include <queue>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Simulates the threads and buffers of a session event by event, in simulated time, with random service times.
//
// The simulation follows the rules of a session. A read first reserves its bytes in the read-ahead budget; only the
// read that is needed next may exceed the budget. Samples become available in the run's order. A worker claims the next
// ticket (row) whose sample is available and whose batch has a slot (memory). Copies and steps process batches in
// order.
// With k outstanding reads, each read is slower by the factor 1 + contention x (k - 1).
// The service time of an operation, such as the 7th read, is drawn with the seed, the kind of the operation and its
// ordinal number. The settings do not affect the draw. Therefore two simulations with different numbers of workers have
// the same service times.
// Errors: setup_error for a model that can never deliver a batch. Threads: the function is pure; any thread may call
// it.

/// The result of simulate().
struct simulated {
  flow_statistics statistics{};
  timeline events{};   ///< timeline after the warm-up; has spans and counters if pipeline_model::with_timeline is set
};

class flow_simulation {
 public:
  explicit flow_simulation(const pipeline_model& m);

  simulated run();

 private:
  static constexpr double never = 1e300;
  enum class kind { unpack, work, copy, step };
  enum stage : std::size_t { read_draws, unpack_draws, work_draws, copy_draws, step_draws };
  struct event {
    double at;
    std::uint64_t order;   // of two events at the same time, the event with the lower order is first
    kind what;
    std::size_t worker;
    std::uint64_t number;   // number of the read, ticket or batch
    double started;
    bool operator<(const event& other) const noexcept;
  };
  struct read {
    double until;   // the read ends when progress_, the time weighted by read_speed(), reaches this value
    std::uint64_t number;
    std::size_t worker;
    double started, outstanding_before;   // outstanding_before: outstanding_ns_ at the start of the read
    bool operator<(const read& other) const noexcept;
  };

  void describe();

  static std::uint64_t rounded(double value) noexcept { return static_cast<std::uint64_t>(value + 0.5); }
  double read_speed() const noexcept;
  double service_time(const empirical_distribution& times, stage s, std::uint64_t number) const noexcept;
  double bytes_of_read() const noexcept { return m_.sample_bytes * static_cast<double>(m_.samples_per_read); }
  /// Returns the maximum number of samples that wait for workers, regardless of their size.
  std::uint64_t max_ahead() const noexcept { return 16'384 + 2 * m_.host_slots * m_.batch_samples; }
  std::uint64_t limit() const noexcept { return (freed_ + m_.host_slots) * m_.batch_samples; }
  std::uint64_t ready_batches() const noexcept { return ready_ - (copy_stage_ != nowhere ? copied_ : handed_out_); }

  /// Advances the time to `at` and adds the elapsed time to the current state of each stage.
  void advance_to(double at);
  void note(std::size_t stage, std::size_t worker, double started, std::uint64_t batch);
  void count_in(const char* name, double value);
  void push(kind what, std::size_t worker, std::uint64_t number, double duration);
  void start_ready_operations();
  void end_read();

  /// Adds the samples of a finished read. Samples become available in the run's order.
  void arrived(std::uint64_t number, std::size_t worker);
  void end(const event& e);
  flow_statistics current_statistics() const;

  struct times {
    double busy = 0, starved = 0, blocked = 0;
  };
  static constexpr std::size_t nowhere = ~std::size_t{0};

  const pipeline_model m_;
  simulated result_{};
  flow_statistics statistics_{};
  std::size_t reading_stage_ = nowhere, unpack_stage_ = nowhere, work_stage_ = nowhere, copy_stage_ = nowhere,
              step_stage_ = nowhere;
  std::vector<times> busy_;
  std::vector<std::vector<std::uint32_t>> tracks_;
  std::array<double, read_levels::max_level + 1> reads_ns_{};

  double now_ = 0, progress_ = 0, outstanding_ns_ = 0, buffered_bytes_ = 0, bytes_read_ = 0, step_ended_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<event> events_;
  std::priority_queue<read> reading_;
  std::vector<std::size_t> idle_workers_, idle_readers_;
  std::vector<std::size_t> missing_samples_;
  std::deque<bool> arrived_;
  std::uint64_t next_read_ = 0, available_ = 0, head_ = 0;
  std::uint64_t ready_ = 0, copied_ = 0, freed_ = 0, handed_out_ = 0, delivered_ = 0;
  std::size_t device_free_ = 0;
  bool copying_ = false, stepping_ = false;
};

/// Returns the measurements and the timeline of a simulated run. Throws setup_error if the model can never deliver a
/// batch.
inline simulated simulate(const pipeline_model& m) { return flow_simulation(m).run(); }

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// The predicted effect of a change.
struct prediction {
  double samples_per_s = 0;
  double gain = 0;   ///< relative to the measured speed; 0.25 is an increase by a quarter
  double data_wait_share = 0;
  verdict then{};
};

namespace detail {

/// Throws setup_error if `batch` is 0, or if a factor is not a finite number greater than 0. Exception: the factor
/// step_time may be 0. The simulation checks the other settings.
void check_change(const what_if_change& c);

/// Returns the model with the change applied.
pipeline_model changed(pipeline_model m, const what_if_change& c);

}   // namespace detail

/// Returns the prediction for a recorded run with the change. Throws setup_error for a setting of 0, and for a factor
/// that is 0, negative or not finite. Only the factor step_time may be 0.
prediction what_if(const flow_statistics& recorded, const what_if_change& c);

/// Returns the changes of gains_of() with simulated gains. gains_of() predicts gains from the limits of the stages; a
/// simulation also includes the effects of the number of slots and of varying service times. A change with a remark,
/// such as "the quota allows no more processor time", is not simulated and keeps the gain of gains_of(). Exception:
/// changes of the batch size are always simulated.
std::vector<knob_gain> simulated_gains(const flow_statistics& recorded);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/simulate/impl/what_if.inl>
#endif
