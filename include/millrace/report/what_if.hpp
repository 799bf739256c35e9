// Predicts what a recorded run would do with other settings, without running it.
//
//   mr::prediction p = mr::what_if(window, {.workers = 8});
//   p.samples_per_s;  p.gain;  p.then.sentence();              // the last: what would limit it then
//   mr::what_if(window, {.prefetch = 8, .storage_speed = 0.25, .step_time = 2});
//   mr::simulated_gains(window);                                // each setting's gain, by replay
//
// The run is replayed twice (report/simulation.hpp), without and with the change, and the ratio is applied to the
// measured speed: what the model leaves out affects both replays alike. A larger batch is assumed to copy and step in
// proportion, except `fixed_step_ns` of each step.
// Errors: setup_error for a setting of 0 and for a factor that is not a number above 0; step_time may be 0.
// Threads: a pure function.
#pragma once

#include <millrace/base/numbers.hpp>
#include <millrace/report/knobs.hpp>
#include <millrace/report/simulation.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// The predicted effect of a change.
struct prediction {
  double samples_per_s = 0;
  double gain = 0;              ///< relative to the measured speed: 0.25 is a quarter more
  double data_wait_share = 0;
  verdict then{};
};

namespace detail {

/// Throws setup_error if a factor is not a number above 0, or a count is 0. A step may take no time.
inline void check_change(const what_if_change& c) {
  const auto refuse = [](const char* what, double got, const char* expected) {
    throw setup_error("what_if_change::" + std::string(what) + " is out of range: got " + std::to_string(got) +
                          ", expected " + expected,
                      "1 leaves it as it was");
  };
  const auto is_factor = [](double x) { return x > 0 && is_finite(x); };
  if (!is_factor(c.storage_speed)) refuse("storage_speed", c.storage_speed, "a number above 0");
  if (!is_factor(c.work_time)) refuse("work_time", c.work_time, "a number above 0");
  if (c.step_time != 0 && !is_factor(c.step_time)) refuse("step_time", c.step_time, "a number that is not below 0");
  if (c.batch && *c.batch == 0) refuse("batch", 0, "at least one sample");
}

/// Returns the model with the change applied.
inline pipeline_model changed(pipeline_model m, const what_if_change& c) {
  m.workers = c.workers.value_or(m.workers);
  if (c.io_threads) m.io_threads = m.useful_readers(*c.io_threads);
  m.host_slots = c.prefetch.value_or(m.host_slots);
  m.read_ns = m.read_ns.scaled(1 / c.storage_speed);
  m.work_ns = m.work_ns.scaled(c.work_time);
  m.step_ns = m.step_ns.scaled(c.step_time);
  if (c.batch) {
    const double larger = static_cast<double>(*c.batch) / static_cast<double>(m.batch_samples);
    m.copy_ns = m.copy_ns.scaled(larger);
    const double fixed = std::min(c.fixed_step_ns, m.step_ns.mean());
    m.step_ns = m.step_ns.with_mean(fixed + (m.step_ns.mean() - fixed) * larger);
    m.batch_bytes *= larger;
    m.batch_samples = *c.batch;
  }
  return m;
}

}  // namespace detail

/// Returns the prediction for a recorded run with the change. Throws setup_error for a setting of 0, and for a factor
/// that is not a number above 0; step_time may be 0.
inline prediction what_if(const detail::flow_figures& recorded, const what_if_change& c) {
  detail::check_change(c);
  const detail::pipeline_model was = model_of(recorded);
  const double before = simulate(was).figures.samples_per_s();
  const detail::flow_figures then = simulate(changed(was, c)).figures;
  const double ratio = before > 0 ? then.samples_per_s() / before : 0;
  return {recorded.samples_per_s() * ratio, ratio - 1, then.data_wait_share(), judge(then)};
}

/// Returns the gains of gains_of(), predicted by replay instead of by the limits. A replay includes the effects of
/// rings and of variance.
inline std::vector<knob_gain> simulated_gains(const detail::flow_figures& recorded) {
  std::vector<knob_gain> gains = gains_of(recorded);
  for (knob_gain& k : gains) {
    if (k.remark.empty() || k.settings.batch) k.gain = what_if(recorded, k.settings).gain;
    k.at_most = k.at_most && k.what != knob::prefetch;
  }
  return gains;
}

}}  // namespace millrace
