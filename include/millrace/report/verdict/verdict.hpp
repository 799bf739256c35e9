// Determines the limit of a run, with the evidence.
//
//   mr::verdict v = mr::judge(figures);
//   v.sentence();          // "CPU-bound in decode: the workers are the limit; your step could be 1.6 times as fast"
//   v.what == mr::bound_by::cpu;  v.where;  v.margin;
//   for (const std::string& line : v.evidence) std::puts(line.c_str());
//   mr::gains_of(figures);     // report/verdict/knobs.hpp: the gain of each setting
//
// Two methods are compared. The limits (limits.hpp): the lowest one binds. The walk, from the trainer upstream: the
// others wait for the first stage that starves less than 5 % of its time.
// If they disagree, the limits decide: with short rings all stages alternately starve and block. `agree` is false in
// that case. The walk decides only if both of these conditions are met. The stage of the lowest limit was busy less
// than 85 % of its time. The walk's stage starved and blocked less than 5 %. The unaccounted time then belongs to the
// walk's stage.
// Balanced: two limits within 10 % of each other. A speedup of one of them gains less than that.
// CPU-starved: workers got less than 95 % of the processor while they worked. They were ready to run for at least half
// of the rest, or a quota throttled the process. The cause is a quota, neighbors, or this process's own threads. The
// run is balanced instead if the trainer is about as slow and waits less than 5 % of its time. Waits of other threads
// of the process are not used: they do not affect the workers.
// Page cache: less than 5 % of the bytes were read from storage.
// Bandwidth: reads reach 85 % of the known ceiling. If it is unknown: reads slow each other down by a quarter or more
// (read_levels.hpp). Otherwise reads are bound by latency, provided that the ceiling or the slowdown is known.
// Errors: fewer than 5 batches, or no trainer, return bound_by::unknown. Threads: a pure function.
// Source of the walk's threshold: TensorFlow's profiler calls a run below 5 % not input-bound.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/verdict/limits.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The words for a stage in a sentence: "your step is", "the workers are".
struct stage_phrase {
  std::string name{};
  const char* is = " is";

  explicit stage_phrase(std::string_view stage);
};

}  // namespace detail

/// The kind of the limit of a run.
enum class bound_by { unknown, consumer, transfer, cpu, io, cpu_starved, balanced };
/// The reason of a limit, if it is known.
enum class bound_cause {
  none,
  bandwidth, latency, page_cache,   ///< causes of I/O limits
  one_shard,                        ///< reading: all wait for the shard whose turn it is; one thread reads it
  quota, neighbors, own_threads,   ///< causes of starved workers
  waits                             ///< workers were busy but neither computed nor were throttled: their code waits
};

/// The limit of a run, its numbers, evidence and advice.
struct verdict {
  bound_by what = bound_by::unknown;
  bound_cause cause = bound_cause::none;
  std::string where{};        ///< the limiting stage; of a fused stage its costliest phase
  std::string limit{};        ///< name of the stage of the limit
  std::string next{};         ///< the next limit; in a balanced run the second of the two
  double margin = 1;          ///< next limit over the lowest
  double samples_per_s = 0;   ///< as measured
  double saturation = 0;      ///< samples_per_s / lowest limit; below 0.95 stages alternate in waiting
  double data_wait_share = 0;
  bool agree = true;          ///< limits and walk select the same stage
  flow_limits limits{};
  std::vector<std::string> evidence{};
  std::string advice{};

  /// Returns the kind of the limit as text: "CPU-bound".
  std::string name() const;
  /// Returns the cause as text: "page cache"; empty if there is none.
  std::string cause_name() const;
  /// Returns the verdict as one sentence.
  std::string sentence() const;
};

namespace detail {

/// Returns the costliest phase of a fused stage; else the name of the stage.
std::string costliest_phase(const stage_statistics& s);

/// Walks from the trainer upstream and returns the index of the stage that the others wait for.
std::size_t walk_upstream(const flow_statistics& f);

/// Returns true, and fills the verdict, if one thread reads the samples that all others wait for.
bool judge_reading_in_turn(const flow_statistics& f, const stage_limit& limit, verdict& v);

void judge_reading(const flow_statistics& f, const stage_statistics& read, const stage_limit& limit, verdict& v);

/// Returns true if this process, rather than others, has more runnable threads than there are cores. Each runnable
/// thread gets about the same share of a core. Therefore the number of other threads is the remaining cores / that
/// share.
bool own_threads_overload(const flow_statistics& f);

/// Returns why workers had less than 95 % of the processor while they worked; none if they had it, or if that was not
/// measured.
bound_cause missing_processor(const flow_statistics& f, const stage_statistics& s);

std::string waited_for_a_core(const stage_statistics& s);

void judge_working(const flow_statistics& f, const stage_statistics& s, verdict& v);

void judge_stage(const flow_statistics& f, const stage_limit& limit, verdict& v);

}  // namespace detail

/// Returns the limit of the run; bound_by::unknown with fewer than 5 batches or without a trainer.
verdict judge(const flow_statistics& f);

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/verdict.inl>
#endif
