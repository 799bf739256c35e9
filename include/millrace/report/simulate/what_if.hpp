// Predicts the effect of other settings on a recorded run, without another run.
//
//   mr::prediction p = mr::what_if(window, {.workers = 8});
//   p.samples_per_s;  p.gain;  p.then.sentence();              // then: the verdict after the change
//   mr::what_if(window, {.prefetch = 8, .storage_speed = 0.25, .step_time = 2});
//   mr::simulated_gains(window);                                // each setting's gain, by replay
//
// The run is simulated twice, without and with the change (report/simulate/simulation.hpp). The measured speed is
// multiplied by the ratio of the two simulated speeds. The times of copies and steps are assumed to be proportional to
// the batch size, except `fixed_step_ns` of each step.
// Errors: setup_error if a setting is 0, or if a factor is not a number greater than 0. Exception: step_time may be 0.
// Threads: the function is pure; any thread may call it.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/simulate/pipeline_model.hpp>
#include <millrace/report/verdict/knobs.hpp>
#include <millrace/report/verdict/verdict.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// The predicted effect of a change.
struct prediction {
  double samples_per_s = 0;
  double gain = 0;   ///< relative to the measured speed; 0.25 is an increase by a quarter
  double data_wait_share = 0;
  verdict then{};
};

namespace detail {

/// Throws setup_error if a setting is 0, or if a factor is not a number greater than 0. Exception: step_time may be 0.
void check_change(const what_if_change& c);

/// Returns the model with the change applied.
pipeline_model changed(pipeline_model m, const what_if_change& c);

}   // namespace detail

/// Returns the prediction for a recorded run with the change. Throws setup_error if a setting is 0, or if a factor is
/// not a number greater than 0. Exception: step_time may be 0.
prediction what_if(const flow_statistics& recorded, const what_if_change& c);

/// Returns the gains of the changes that gains_of() returns. These gains are predicted by simulation, and not from the
/// limits. A simulation includes the effects of ring sizes and of variance.
std::vector<knob_gain> simulated_gains(const flow_statistics& recorded);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/simulate/impl/what_if.inl>
#endif
