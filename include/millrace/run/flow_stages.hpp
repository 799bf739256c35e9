// Reads what the stages of a flow set for its session.
//
//   mr::detail::run_settings s;
//   std::apply([&](auto&... stages) { (mr::detail::add_settings(stages, s), ...); }, flow.stages);   // size, device
//
// Errors: none. Threads: pure functions.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/run/run_core.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Sets what a stage says about the whole run: the rows of a batch, prefetch, the device. The last one of a kind
/// counts.
inline void add_settings(const prefetch_stage& stage, run_settings& s) { s.prefetch_batches = stage.options.batches; }
inline void add_settings(const to_device_stage& stage, run_settings& s) { s.device = stage.options; }
template <class Stage>
void add_settings(const Stage& stage, run_settings& s) {
  if constexpr (is_batch<Stage>) s.batch_rows += stage.options.size;
}

}}}  // namespace millrace::detail
