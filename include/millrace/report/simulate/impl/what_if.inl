// Definitions for what_if.hpp.
#pragma once

#include <millrace/report/simulate/what_if.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/half.hpp>
#include <millrace/report/simulate/simulation.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void check_change(const what_if_change& c) {
  const auto refuse = [](const char* what, double got, const char* expected) {
    throw setup_error("what_if_change::" + std::string(what) + " is out of range: got " + std::to_string(got) +
                          ", expected " + expected,
                      "Set 1 for no change");
  };
  const auto is_factor = [](double x) { return x > 0 && is_finite(x); };
  if (!is_factor(c.storage_speed)) refuse("storage_speed", c.storage_speed, "a number above 0");
  if (!is_factor(c.work_time)) refuse("work_time", c.work_time, "a number above 0");
  if (c.step_time != 0 && !is_factor(c.step_time)) refuse("step_time", c.step_time, "a number of at least 0");
  if (c.batch && *c.batch == 0) refuse("batch", 0, "at least one sample");
}

MILLRACE_INLINE pipeline_model changed(pipeline_model m, const what_if_change& c) {
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

}   // namespace detail

MILLRACE_INLINE prediction what_if(const flow_statistics& recorded, const what_if_change& c) {
  detail::check_change(c);
  const detail::pipeline_model was = detail::model_of(recorded);
  const double before = simulate(was).statistics.samples_per_s();
  const flow_statistics then = simulate(changed(was, c)).statistics;
  const double ratio = before > 0 ? then.samples_per_s() / before : 0;
  return {recorded.samples_per_s() * ratio, ratio - 1, then.data_wait_share(), judge(then)};
}

MILLRACE_INLINE std::vector<knob_gain> simulated_gains(const flow_statistics& recorded) {
  std::vector<knob_gain> gains = gains_of(recorded);
  for (knob_gain& k : gains) {
    if (k.remark.empty() || k.settings.batch) k.gain = what_if(recorded, k.settings).gain;
    k.at_most = k.at_most && k.what != knob::prefetch;
  }
  return gains;
}

}}   // namespace millrace
