// Determines which part of a run limits its speed, and lists the evidence.
//
//   mr::verdict v = mr::judge(statistics);
//   v.sentence();          // "CPU-bound in decode: the workers are the limit; your step could be 1.6 times as fast"
//   v.what == mr::bound_by::cpu;  v.where;  v.margin;
//   for (const std::string& line : v.evidence) std::puts(line.c_str());
//   mr::gains_of(statistics);     // report/verdict/knobs.hpp: the gain of each setting
//
// A stage starves while it waits for input, and blocks while it waits for space. The verdict compares two methods:
// - Limits (limits.hpp): the limit of a stage is its maximum speed. The stage with the lowest limit limits the run.
// - Walk: visits the stages from the training step back to the source. The first stage that starves for less than 5 %
//   of its time limits the run. If there is none, reading limits the run.
//
// If the methods select different stages, `agree` is false, and the verdict uses the stage of the limits. There is one
// exception: the verdict uses the stage of the walk if the speed is below 85 % of the lowest limit. This stage must
// also starve or block for less than 5 % of its time.
//
// In addition to the limiting stage, a verdict states one of these conditions if it applies:
// - Balanced: the two lowest limits differ by less than 10 %. Raising only one of these limits gains less than 10 %.
// - CPU-starved: while the workers had work, they had a core for less than 95 % of the time. For the
//   remaining time, a worker waited for a core, or a quota throttled the process. The cause is a quota, neighbors
//   (other programs), or other threads of the process.
// - Page cache: reads are the limit, and less than 5 % of the bytes were read from storage.
// - Bandwidth: reads are the limit, and reach 85 % of the ceiling (the maximum speed of the storage). If the ceiling is
//   unknown: reads are the limit, and concurrent reads slow each other down by a quarter or more (read_levels.hpp).
// - Latency: reads are the limit, the ceiling or the slowdown was measured, and the rule for bandwidth does not apply.
//   If neither was measured, the cause is unknown.
//
// Errors: the result is bound_by::unknown if fewer than 5 batches, or no training step, were measured.
// Threads: the function is pure; any thread may call it.
// Source of the walk's threshold: TensorFlow's profiler classifies a run as not input-bound if it waits for input for
// less than 5 % of the step time.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/verdict/limits.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The words for a stage in the verdict's sentence: "your step is", "the workers are".
struct stage_phrase {
  std::string name{};
  const char* is = " is";

  explicit stage_phrase(std::string_view stage);
};

}   // namespace detail

/// The kind of stage that limits a run.
enum class bound_by { unknown, consumer, transfer, cpu, io, cpu_starved, balanced };
/// The cause of a limit, if it is known.
enum class bound_cause {
  none,
  bandwidth,
  latency,
  page_cache,   ///< `bandwidth`, `latency`, `page_cache`: causes if reads are the limit
  one_shard,    ///< all stages wait for the one thread that reads the next shard in the order
  quota,
  neighbors,
  own_threads,   ///< `quota`, `neighbors`, `own_threads`: causes if workers got too little CPU time
  waits          ///< the workers called functions that wait, although cores were available
};

/// The limit of a run, its numbers, evidence and advice.
struct verdict {
  bound_by what = bound_by::unknown;
  bound_cause cause = bound_cause::none;
  std::string where{};        ///< the limiting stage, or the costliest phase of a stage that has phases
  std::string limit{};        ///< name of the limiting stage
  std::string next{};         ///< name of the stage with the next limit
  double margin = 1;          ///< ratio of the next limit to the lowest limit
  double samples_per_s = 0;   ///< the measured speed
  double saturation = 0;      ///< samples_per_s / lowest limit; if below 0.95, stages wait for each other in turn
  double data_wait_share = 0;
  bool agree = true;   ///< whether limits and walk select the same stage
  flow_limits limits{};
  std::vector<std::string> evidence{};
  std::string advice{};
  /// The gain if other machines compute rows (feeders). Set if the workers are the limit, and the time that the trainer
  /// needs to receive rows was measured.
  std::optional<feeder_gain> feeders{};

  /// Returns the kind of the limit as text, such as "CPU-bound".
  std::string name() const;
  /// Returns the cause as text, such as "page cache"; empty if the cause is unknown.
  std::string cause_name() const;
  /// Returns the verdict as one sentence.
  std::string sentence() const;
};

namespace detail {

/// Returns the name of the costliest phase of a fused stage, or the name of a stage without phases.
std::string costliest_phase(const stage_statistics& s);

/// Visits the stages from the training step back to the source. Returns the index of the stage that limits the run by
/// the rule of the walk.
std::size_t limit_upstream_of(const flow_statistics& f);

/// If all stages wait for the thread that reads the next shard in the order, fills the verdict and returns true.
bool judge_reading_in_turn(const flow_statistics& f, const stage_limit& limit, verdict& v);

void judge_reading(const flow_statistics& f, const stage_statistics& read, const stage_limit& limit, verdict& v);

/// Returns true if mainly this process overloads the cores, and not other processes.
bool own_threads_overload(const flow_statistics& f);

/// Returns the reason why the workers used a core for less than 95 % of the time that they worked. Returns
/// bound_cause::none if they used a core for at least 95 % of this time, or if their CPU time was not measured.
bound_cause missing_processor_time(const flow_statistics& f, const stage_statistics& s);

std::string waited_for_a_core(const stage_statistics& s);

void judge_working(const flow_statistics& f, const stage_statistics& s, verdict& v);

void judge_stage(const flow_statistics& f, const stage_limit& limit, verdict& v);

}   // namespace detail

/// Returns the limit of the run; bound_by::unknown if fewer than 5 batches, or no training step, were measured.
verdict judge(const flow_statistics& f);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/verdict.inl>
#endif
