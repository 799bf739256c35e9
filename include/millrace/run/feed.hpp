// Runs the loop over a session as one call, for trainers that are built around a callback.
//
//   mr::feed(std::move(flow), {.epochs = 90}, [&](auto& b) {
//     auto [pixels, labels] = b.columns();
//     train_step(pixels, labels, b.stream());
//   });
//
// Order and errors are those of session (run/session.hpp). Threads: the step runs on the calling thread.
#pragma once

#include <millrace/run/session.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

template <class Flow>
concept is_delivered = ends_in_batch<typename Flow::item> || std::same_as<Flow, broken_flow>;

namespace diagnose {

/// Gives the compile error of feed() for a flow without batches.
struct flow_without_batch {
  template <flow_like Flow>
    requires(!detail::is_delivered<Flow>)
  __attribute__((unavailable("millrace: feed needs a flow of batches, and this one has no batch. End it in "
                             "batch<&item::column, ...>, prefetch or to_device.")))
  flow_without_batch(const Flow&) {}
};

}  // namespace diagnose

}  // namespace detail

/// Runs `flow` and calls `step(batch)` for each batch. Returns the counters of the run.
/// Throws what session throws and what `step` throws.
template <detail::flow_like Flow, class Step>
  requires detail::is_delivered<Flow>
detail::run_stats feed(Flow flow, session_options options, Step&& step) {
  session run{std::move(flow), options};
  for (auto& batch : run) step(batch);
  return run.stats();
}
/// Rejects a flow without batches at compile time.
template <class Step>
detail::run_stats feed(detail::diagnose::flow_without_batch, session_options, Step&&) {
  return {};
}

}}  // namespace millrace
