// Definitions for engine.hpp.
#pragma once

#include <millrace/run/engine.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE pipeline_builder_options engine_base::builder_options(const flow_parts& of,
                                                                    const planned_run& order) const {
  return {.seed = of.seed,
          .workers = core_.threads().max_workers(),
          .arena = core_.arena(),
          .shuffle_bytes = core_.budget_bytes(),
          .keeps_older_order = order.keeps_older_order(),
          .boundaries = order.boundaries(),
          .numbers = order.numbers(),
          .names = of.names,
          .damaged = of.damaged};
}

MILLRACE_RARE shard_read_stage_options engine_base::read_options(std::uint64_t epochs) {
  return {.threads = core_.threads().max_reads(),
          .epochs = epochs,
          .read_ahead_bytes = core_.read_ahead_bytes(),
          .window_bytes = core_.budget_bytes(),
          .lost = core_.lost()};
}

MILLRACE_RARE void engine_base::start(const read_parts& of, built_segments& segments) {
  order_ = of.order;
  if (of.names) of.read->name_samples(of.names);
  if (of.damaged->tolerates_damage()) of.read->continue_after_damage();
  core_.start({.order = of.order,
               .read = of.read,
               .segments = segments.nodes(),
               .last = &segments.last(),
               .damaged = of.damaged});
}

MILLRACE_RARE void engine_base::throw_moved_from() {
  throw setup_error("the session was moved from and has no run", "Use the session to which it was moved");
}

MILLRACE_RARE engine_base::engine_base(const session_options& options, const run_settings& settings)
    : core_(options, settings) {}

MILLRACE_RARE engine_base::~engine_base() = default;

MILLRACE_RARE bool engine_base::wait_at_most(std::uint64_t time_ns, std::uint64_t epoch) {
  const run_core::call here(core_);
  return core_.wait_at_most(time_ns, epoch);
}

MILLRACE_RARE void engine_base::deleter::operator()(engine_base* e) const noexcept {
  if (!e->core_.is_forked()) delete e;
}

}}}   // namespace millrace::detail
