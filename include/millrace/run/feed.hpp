// feed: the loop over a session as one call, for trainers that are built around a callback.
//
//   mr::feed(std::move(flow), {.epochs = 90}, [&](auto& b) {
//     auto [pixels, labels] = b.columns();
//     train_step(pixels, labels, b.stream());
//   });
//
// Order, errors and threads are those of session; the step runs on the calling thread. Returns the run's counters.
#pragma once

#include <millrace/run/session.hpp>

namespace millrace::inline MILLRACE_ABI {

template <flow_like Flow, class Step>
run_stats feed(Flow flow, session_options options, Step&& step) {
  session run{std::move(flow), options};
  for (auto& batch : run) step(batch);
  return run.stats();
}

}  // namespace millrace::inline MILLRACE_ABI
