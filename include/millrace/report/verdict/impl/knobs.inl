// Defines what knobs.hpp declares.
#pragma once

#include <millrace/report/verdict/knobs.hpp>

#include <millrace/report/verdict/verdict.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE double processor_gain(const flow_figures& f, const stage_figures& work, std::size_t workers) {
  const auto concurrency = static_cast<double>(work.concurrency), then = static_cast<double>(workers);
  const bound_cause missing = missing_processor(f, work);
  if (missing == bound_cause::quota) return 1;
  const bool crowded = missing == bound_cause::neighbors || missing == bound_cause::own_threads;
  if (!crowded || f.usable_cores == 0 || work.cpu_ns == 0) return then / concurrency;
  const double share = static_cast<double>(work.cpu_ns) / static_cast<double>(work.busy_ns);
  const double running = std::max(static_cast<double>(f.usable_cores) / share, concurrency);
  return then / concurrency * running / (running + then - concurrency);
}

}  // namespace detail

MILLRACE_INLINE std::vector<knob_gain> gains_of(const detail::flow_figures& f) {
  std::vector<knob_gain> gains;
  const detail::flow_limits now = limits_of(f);
  if (now.empty() || f.samples == 0) return gains;
  const auto predict = [&](knob what, std::string change, const detail::flow_change& c) -> knob_gain& {
    const detail::flow_limits then = limits_of(f, c);
    gains.push_back({what, std::move(change), then.lowest().samples_per_s / now.lowest().samples_per_s - 1,
                     then.lowest().name, false, {}, {}});
    return gains.back();
  };
  const auto from_to = [](std::size_t from, std::size_t to, const char* unit) {
    return std::to_string(from) + " -> " + std::to_string(to) + " " + unit;
  };

  if (const detail::stage_figures* const work = f.find(detail::stage_kind::work); work && work->concurrency > 0) {
    const bound_cause missing = detail::missing_processor(f, *work);
    const bool crowded = missing == bound_cause::neighbors || missing == bound_cause::own_threads;
    const bool has_spare_core =
        missing != bound_cause::quota && (f.usable_cores == 0 || work->concurrency < f.usable_cores);
    knob_gain& one = predict(knob::workers, from_to(work->concurrency, work->concurrency + 1, "workers"),
                             {.workers = has_spare_core ? detail::processor_gain(f, *work, work->concurrency + 1) : 1});
    if (has_spare_core) one.settings.workers = work->concurrency + 1;
    if (missing == bound_cause::quota) one.remark = "the quota does not give them time";
    else if (!has_spare_core) one.remark = "all " + std::to_string(f.usable_cores) + " usable cores have one";
    else if (crowded) one.remark = "if it gets as much of the crowded cores as the others";
    else if (f.usable_cores > work->concurrency + 1)
      predict(knob::workers, from_to(work->concurrency, f.usable_cores, "workers"),
              {.workers = detail::processor_gain(f, *work, f.usable_cores)})
          .settings.workers = f.usable_cores;

    const detail::phase_figures* costly = nullptr;
    for (const auto& p : work->phases)
      if (!costly || p.busy_ns > costly->busy_ns) costly = &p;
    if (costly && work->busy_ns > 0) {
      const double share = static_cast<double>(costly->busy_ns) / static_cast<double>(work->busy_ns);
      predict(knob::work, costly->name + " at half the cost",
              {.work_time = 1 - share / 2, .stage = static_cast<std::size_t>(work - f.stages.data())})
          .settings.work_time = 1 - share / 2;
    }
  }
  if (const detail::stage_figures* const read = f.find(detail::stage_kind::read); read && read->concurrency > 0) {
    knob_gain& twice =
        predict(knob::io_threads, from_to(read->concurrency, 2 * read->concurrency, "I/O threads"), {.io_threads = 2});
    if (now.reads_in_turn()) twice.remark = "the shard whose turn it is has one thread";
    else twice.at_most = !f.reads_at_once.contention();
    twice.settings.io_threads = 2 * read->concurrency;
    predict(knob::storage_speed, "storage twice as fast", {.storage_speed = 2}).settings.storage_speed = 2;
  }
  gains.push_back({knob::prefetch,
                   f.host_slots > 0 ? from_to(f.host_slots, 2 * f.host_slots, "batches prefetched") : "deeper prefetch",
                   std::max(0.0, now.lowest().samples_per_s / f.samples_per_s() - 1), now.lowest().name, true, {}, {}});
  if (f.host_slots > 0) gains.back().settings.prefetch = 2 * f.host_slots;
  knob_gain& batch = predict(
      knob::batch,
      f.batch_samples > 0 ? from_to(f.batch_samples, 2 * f.batch_samples, "samples a batch") : "twice the batch",
      {.step_time = 0.5, .copy_time = 0.5});
  batch.at_most = true;
  if (f.batch_samples > 0) batch.settings = what_if_change{.batch = 2 * f.batch_samples, .step_time = 0.5};
  batch.remark = "as if a larger batch took no longer to copy and to step";
  predict(knob::step, "step twice as fast", {.step_time = 0.5}).settings.step_time = 0.5;
  return gains;
}

}}  // namespace millrace
