// Definitions for knobs.hpp.
#pragma once

#include <millrace/report/verdict/knobs.hpp>

#include <millrace/report/verdict/verdict.hpp>

#include <algorithm>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns true if other threads use the cores that the workers need.
MILLRACE_INLINE bool is_crowded(bound_cause missing) noexcept {
  return missing == bound_cause::neighbors || missing == bound_cause::own_threads;
}

MILLRACE_INLINE double processor_gain(const flow_statistics& f, const stage_statistics& work, std::size_t workers) {
  const auto concurrency = static_cast<double>(work.concurrency), then = static_cast<double>(workers);
  const bound_cause missing = missing_processor_time(f, work);
  if (missing == bound_cause::quota) return 1;
  if (!is_crowded(missing) || f.usable_cores == 0 || work.cpu_ns == 0) return then / concurrency;
  const double share = static_cast<double>(work.cpu_ns) / static_cast<double>(work.busy_ns);
  const double running = std::max(static_cast<double>(f.usable_cores) / share, concurrency);
  return then / concurrency * running / (running + then - concurrency);
}

/// Predicts the gain of each knob for one run. Each function returns its predictions by value.
struct gain_predictor {
  const flow_statistics& f;
  const flow_limits now = limits_of(f);

  knob_gain predict(knob what, std::string change, const predicted_flow_change& c,
                    const what_if_change& settings) const {
    const flow_limits then = limits_of(f, c);
    return {.what = what,
            .change = std::move(change),
            .gain = then.lowest().samples_per_s / now.lowest().samples_per_s - 1,
            .next = then.lowest().name,
            .settings = settings};
  }

  static std::string from_to(std::size_t from, std::size_t to, const char* unit) {
    return std::to_string(from) + " -> " + std::to_string(to) + " " + unit;
  }

  /// Returns the gain of `count` workers; it is 0 if no core has time for more of them.
  knob_gain workers(const stage_statistics& work, std::size_t count, bool has_time) const {
    return predict(knob::workers, from_to(work.concurrency, count, "workers"),
                   {.workers = has_time ? processor_gain(f, work, count) : 1},
                   {.workers = has_time ? std::optional(count) : std::nullopt});
  }

  /// Returns the gain of one more worker, and of a worker on each core if cores are idle.
  std::vector<knob_gain> workers(const stage_statistics& work) const {
    const bound_cause missing = missing_processor_time(f, work);
    const std::size_t one_more = work.concurrency + 1;
    const bool has_spare_core = missing != bound_cause::quota &&
                                (f.usable_cores == 0 || work.concurrency < f.usable_cores);
    std::vector<knob_gain> gains{workers(work, one_more, has_spare_core)};
    std::string& remark = gains.front().remark;
    if (missing == bound_cause::quota) remark = "the quota allows no more processor time";
    else if (!has_spare_core) remark = "all " + std::to_string(f.usable_cores) + " usable cores already have a worker";
    else if (is_crowded(missing)) remark = "if it gets the same share of the crowded cores as the others";
    else if (f.usable_cores > one_more) gains.push_back(workers(work, f.usable_cores, true));
    return gains;
  }

  /// Returns the gain of halving the cost of the costliest phase; std::nullopt without phases.
  std::optional<knob_gain> cheaper_work(const stage_statistics& work) const {
    const auto costly = std::max_element(work.phases.begin(), work.phases.end(),
                                         [](const auto& a, const auto& b) { return a.busy_ns < b.busy_ns; });
    if (costly == work.phases.end() || work.busy_ns == 0) return std::nullopt;
    const double time = 1 - static_cast<double>(costly->busy_ns) / static_cast<double>(work.busy_ns) / 2;
    return predict(knob::work, costly->name + " at half the cost",
                   {.work_time = time, .stage = static_cast<std::size_t>(&work - f.stages.data())},
                   {.work_time = time});
  }

  knob_gain io_threads(const stage_statistics& read) const {
    const std::size_t twice = 2 * read.concurrency;
    knob_gain g = predict(knob::io_threads, from_to(read.concurrency, twice, "I/O threads"), {.io_threads = 2},
                          {.io_threads = twice});
    if (now.reads_in_turn()) g.remark = "only one thread reads the current shard";
    else g.at_most = !f.reads_at_once.contention();
    return g;
  }

  knob_gain prefetch() const {
    const std::size_t twice = 2 * f.host_slots;
    knob_gain g{.what = knob::prefetch,
                .change = f.host_slots > 0 ? from_to(f.host_slots, twice, "batches prefetched") : "deeper prefetch",
                .gain = std::max(0.0, now.lowest().samples_per_s / f.samples_per_s() - 1),
                .next = now.lowest().name,
                .at_most = true};
    if (f.host_slots > 0) g.settings.prefetch = twice;
    return g;
  }

  knob_gain batch() const {
    const std::size_t twice = 2 * f.batch_samples;
    knob_gain g = predict(
        knob::batch, f.batch_samples > 0 ? from_to(f.batch_samples, twice, "samples per batch") : "twice the batch",
        {.step_time = 0.5, .copy_time = 0.5},
        f.batch_samples > 0 ? what_if_change{.batch = twice, .step_time = 0.5} : what_if_change());
    g.at_most = true;
    g.remark = "assumes that copying and the step take the same time";
    return g;
  }
};

}   // namespace detail

MILLRACE_INLINE std::vector<knob_gain> gains_of(const flow_statistics& f) {
  const detail::gain_predictor of{f};
  if (of.now.empty() || f.samples == 0) return {};
  std::vector<knob_gain> gains;
  if (const stage_statistics* const work = f.find(stage_kind::work); work && work->concurrency > 0) {
    gains = of.workers(*work);
    if (auto cheaper = of.cheaper_work(*work)) gains.push_back(*std::move(cheaper));
  }
  if (const stage_statistics* const read = f.find(stage_kind::read); read && read->concurrency > 0) {
    gains.push_back(of.io_threads(*read));
    gains.push_back(
        of.predict(knob::storage_speed, "storage twice as fast", {.storage_speed = 2}, {.storage_speed = 2}));
  }
  gains.push_back(of.prefetch());
  gains.push_back(of.batch());
  gains.push_back(of.predict(knob::step, "step twice as fast", {.step_time = 0.5}, {.step_time = 0.5}));
  return gains;
}

}}   // namespace millrace
