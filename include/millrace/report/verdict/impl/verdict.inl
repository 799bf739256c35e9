// Definitions for verdict.hpp.
#pragma once

#include <millrace/report/verdict/verdict.hpp>

#include <millrace/base/format.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE stage_phrase::stage_phrase(std::string_view stage) : name(stage) {
  if (stage == "read") name = "reading";
  else if (stage == "unpack") name = "unpacking";
  else if (stage == "copy") name = "the copy to the device";
  else if (stage == "step") name = "your step";
  if (stage != "workers" && stage != "work") return;
  name = "the workers";
  is = " are";
}

}   // namespace detail

MILLRACE_INLINE std::string verdict::name() const {
  switch (what) {
    case bound_by::unknown: return "Unknown";
    case bound_by::consumer: return "Consumer-bound";
    case bound_by::transfer: return "Transfer-bound";
    case bound_by::cpu: return "CPU-bound";
    case bound_by::io: return "I/O-bound";
    case bound_by::cpu_starved: return "CPU-starved";
    case bound_by::balanced: break;
  }
  return "Balanced";
}

MILLRACE_INLINE std::string verdict::cause_name() const {
  switch (cause) {
    case bound_cause::none: break;
    case bound_cause::bandwidth: return "bandwidth";
    case bound_cause::latency: return "latency";
    case bound_cause::page_cache: return "page cache";
    case bound_cause::one_shard: return "one shard at a time";
    case bound_cause::quota: return "quota";
    case bound_cause::neighbors: return "neighbors";
    case bound_cause::own_threads: return "own threads";
    case bound_cause::waits: return "waits";
  }
  return "";
}

MILLRACE_INLINE std::string verdict::sentence() const {
  if (what == bound_by::unknown) return "No verdict: " + (evidence.empty() ? "nothing was measured" : evidence[0]);
  const detail::stage_phrase first(limit.empty() ? where : limit), second(next);
  std::string text = name();
  if (what == bound_by::balanced)
    return text + ": " + first.name + " and " + second.name + " are within 10 % of each other";
  if (what == bound_by::cpu || what == bound_by::cpu_starved) text += " in " + where;
  if (cause != bound_cause::none) text += " (" + cause_name() + ")";
  text += ": " + first.name + first.is + " the limit";
  if (next.empty()) return text;
  if (margin < 1.05) return text + "; " + second.name + second.is + " about as slow";
  text += "; " + (what == bound_by::consumer ? "loading" : second.name);
  return text + " could be " + detail::times_as_fast(margin);
}

namespace detail {

MILLRACE_INLINE std::string costliest_phase(const stage_statistics& s) {
  const phase_statistics* most = nullptr;
  for (const auto& p : s.phases)
    if (!most || p.busy_ns > most->busy_ns) most = &p;
  return most ? most->name : s.name;
}

MILLRACE_INLINE std::size_t limit_upstream_of(const flow_statistics& f) {
  std::size_t first = 0;
  for (std::size_t i = f.stages.size(); i-- > 0;) {
    const stage_statistics& s = f.stages[i];
    if (s.kind == stage_kind::unpack) continue;   // belongs to the previous reading stage
    const double starved = s.kind == stage_kind::step ? f.data_wait_share() : s.starved_share();
    first = i;
    if (s.kind == stage_kind::read || starved < 0.05) break;
  }
  return first;
}

MILLRACE_INLINE bool judge_reading_in_turn(const flow_statistics& f, const stage_limit& limit, verdict& v) {
  const stage_statistics* const read = f.find(stage_kind::read);
  if (!limit.in_turn || !read) return false;
  v.cause = bound_cause::one_shard;
  const double share = static_cast<double>(f.in_turn_samples) /
                       static_cast<double>(std::max(f.in_turn_samples, f.passed_on_samples));
  v.evidence.push_back(percent(share) + " of the samples came from the current shard, which only one of " +
                       std::to_string(read->concurrency) +
                       " I/O threads reads; the others read samples that are delivered later");
  v.advice = limit.kind == stage_kind::unpack
                 ? "One thread unpacks one shard at a time: use a faster codec, no compression, or shorter shards"
                 : "Shorter shards, or an index (.index of shards()), let several I/O threads read the next samples; "
                   "more threads alone do not help";
  return true;
}

MILLRACE_INLINE void judge_reading(const flow_statistics& f, const stage_statistics& read, const stage_limit& limit,
                                   verdict& v) {
  v.what = bound_by::io;
  const double busy_s = 1e-9 * static_cast<double>(f.reads_at_once.busy_ns());
  const double speed = busy_s > 0 ? static_cast<double>(read.bytes) / busy_s : 0;
  const std::optional<double> contention = f.reads_at_once.contention();
  const double outstanding = f.reads_at_once.mean_outstanding();
  if (speed > 0) {
    std::string text = "read " + bytes_text(speed) + "/s with " + three_digits(outstanding) + " outstanding of " +
                       std::to_string(read.concurrency);
    if (f.storage_ceiling_bytes_per_s > 0)
      text += ", " + percent(speed / f.storage_ceiling_bytes_per_s) + " of the ceiling of " +
              bytes_text(f.storage_ceiling_bytes_per_s) + "/s";
    v.evidence.push_back(text);
  }
  if (contention) v.evidence.push_back("concurrent reads slow each other down by " + percent(*contention));
  const double from_storage = f.storage_bytes && read.bytes > 0
                                  ? static_cast<double>(*f.storage_bytes) / static_cast<double>(read.bytes)
                                  : 1;
  if (f.storage_bytes) v.evidence.push_back(percent(from_storage) + " of the bytes came from storage");
  if (judge_reading_in_turn(f, limit, v)) return;
  if (from_storage < 0.05) {
    v.cause = bound_cause::page_cache;
    v.advice = "Storage is not the limit: use more I/O threads, or an index to parse less";
  } else if (f.storage_ceiling_bytes_per_s > 0 ? speed >= 0.85 * f.storage_ceiling_bytes_per_s
                                               : contention && *contention >= 0.25) {
    v.cause = bound_cause::bandwidth;
    v.advice = "Use faster storage, a copy on a local disk, or smaller samples; more concurrent reads do not help";
  } else if (f.storage_ceiling_bytes_per_s > 0 || contention) {
    v.cause = bound_cause::latency;
    v.advice = "Use more I/O threads for more concurrent reads";
  } else {
    v.evidence.push_back("all reads ran at the same concurrency, so bandwidth and latency cannot be separated");
    v.advice = "Try twice the I/O threads: a higher speed indicates latency, the same speed indicates bandwidth";
  }
}

MILLRACE_INLINE bool own_threads_overload(const flow_statistics& f) {
  if (f.usable_cores == 0 || f.process_cpu_ns == 0 || f.wall_ns == 0) return false;
  const double cores = static_cast<double>(f.usable_cores);
  const double used = 1e-9 * static_cast<double>(f.process_cpu_ns) / f.wall_s();
  const double required = used + 1e-9 * static_cast<double>(f.run_delay_ns) / f.wall_s();
  return required - cores > (cores - used) * required / used;
}

MILLRACE_INLINE bound_cause missing_processor_time(const flow_statistics& f, const stage_statistics& s) {
  const auto busy = static_cast<double>(s.busy_ns), missing = busy - static_cast<double>(s.cpu_ns);
  if (s.cpu_ns == 0 || missing <= 0.05 * busy) return bound_cause::none;
  if (static_cast<double>(f.throttled_ns) >= 0.1 * missing) return bound_cause::quota;
  if (static_cast<double>(s.run_delay_ns) < 0.5 * missing) return bound_cause::waits;
  return own_threads_overload(f) ? bound_cause::own_threads : bound_cause::neighbors;
}

MILLRACE_INLINE std::string waited_for_a_core(const stage_statistics& s) {
  return s.name + " waited for a core for " +
         percent(static_cast<double>(s.run_delay_ns) / static_cast<double>(s.busy_ns)) +
         " of the time that they worked";
}

MILLRACE_INLINE void judge_working(const flow_statistics& f, const stage_statistics& s, verdict& v) {
  v.what = bound_by::cpu;
  v.where = costliest_phase(s);
  v.cause = missing_processor_time(f, s);
  if (s.cpu_ns > 0 && s.busy_ns > 0)
    v.evidence.push_back(s.name + " used the processor for " +
                         percent(static_cast<double>(s.cpu_ns) / static_cast<double>(s.busy_ns)) +
                         " of the time that they worked");
  if (v.cause == bound_cause::quota) {
    v.what = bound_by::cpu_starved;
    v.evidence.push_back("the quota throttled the process for " + time_text(static_cast<double>(f.throttled_ns)));
    v.advice = "Raise the quota, or use fewer workers: more workers do not help";
  } else if (v.cause == bound_cause::neighbors) {
    v.what = bound_by::cpu_starved;
    v.evidence.push_back(waited_for_a_core(s) + ", because other programs used the cores");
    v.advice = "Other programs use the cores: add or reserve cores; more workers only get a larger share";
  } else if (v.cause == bound_cause::own_threads) {
    v.what = bound_by::cpu_starved;
    v.evidence.push_back(waited_for_a_core(s) + ", because other threads of this process used the cores");
    v.advice = s.concurrency > f.usable_cores
                   ? "There are more workers than cores: use " + std::to_string(f.usable_cores) +
                         " workers at most, or more cores"
                   : std::string(
                         "The process runs more threads than there are cores: reduce the cost of reading or of other "
                         "threads, or add cores");
  } else if (v.cause == bound_cause::waits) {
    v.advice =
        "A callable blocks a worker (a lock, a sleep, a read): map(f, {.blocking = true}) runs it on its own threads";
  } else if (s.kind == stage_kind::unpack) {
    v.advice = "Decompression runs on the I/O threads: use more of them, a faster codec, or no compression";
  } else if (s.concurrency == 1 && f.find(stage_kind::work) != &s) {
    v.advice = "This stage runs on one thread: reduce its cost, or run it in parallel (const push, no finish)";
  } else {
    v.advice = "Use more workers if cores are idle, a smaller crop before the resize, or normalize on the device";
  }
}

MILLRACE_INLINE void judge_stage(const flow_statistics& f, const stage_limit& limit, verdict& v) {
  const stage_statistics& s = f.stages[limit.stage];
  v.where = s.name;
  switch (s.kind) {
    case stage_kind::read: judge_reading(f, s, limit, v); break;
    case stage_kind::unpack:
    case stage_kind::work:
      judge_working(f, s, v);
      judge_reading_in_turn(f, limit, v);
      break;
    case stage_kind::copy: {
      v.what = bound_by::transfer;
      v.advice = "Send smaller batches (u8 pixels, normalized on the device), or check the connection of the device";
      const double busy_s = 1e-9 * static_cast<double>(s.busy_ns);
      if (busy_s <= 0 || s.bytes == 0) break;
      const double speed = static_cast<double>(s.bytes) / busy_s;
      v.evidence.push_back("copied " + bytes_text(speed) + "/s" +
                           (f.copy_ceiling_bytes_per_s > 0 ? ", " + percent(speed / f.copy_ceiling_bytes_per_s) +
                                                                 " of the speed of pinned memory on this machine"
                                                           : std::string()));
      break;
    }
    case stage_kind::step:
      v.what = bound_by::consumer;
      v.advice = "Loading keeps up: only a faster step or another device increases the throughput";
      break;
  }
}

}   // namespace detail

MILLRACE_INLINE verdict judge(const flow_statistics& f) {
  using namespace detail;
  verdict v;
  v.samples_per_s = f.samples_per_s();
  v.data_wait_share = f.data_wait_share();
  v.limits = limits_of(f);
  if (f.batches < 5 || v.limits.empty() || !f.find(stage_kind::step)) {
    v.evidence.push_back("only " + std::to_string(f.batches) + " batches were measured: expected at least 5");
    return v;
  }
  const auto& limits = v.limits.all;
  std::size_t selected = 0;
  v.saturation = v.samples_per_s / limits[0].samples_per_s;
  const std::size_t walked = limit_upstream_of(f);
  const auto is_walked = [&](const stage_limit& l) {
    return l.stage == walked || (l.kind == stage_kind::unpack && f.stages[walked].kind == stage_kind::read);
  };
  v.agree = is_walked(limits[0]);
  const bool never_idle = f.share(f.stages[walked], f.stages[walked].starved_ns + f.stages[walked].blocked_ns) < 0.05;
  if (!v.agree && v.saturation < 0.85 && never_idle)
    for (std::size_t i = 0; i < limits.size(); ++i)
      if (is_walked(limits[i])) selected = i;
  const std::size_t next = selected == 0 ? 1 : 0;
  v.margin = selected == 0 ? v.limits.margin() : 1 / v.saturation;
  v.limit = limits[selected].name;
  if (next < limits.size()) v.next = limits[next].name;

  v.evidence.push_back("the trainer waited for data " + percent(v.data_wait_share) + " of its time");
  v.evidence.push_back(limits[selected].name + " can do " + grouped(limits[selected].samples_per_s) + " samples/s; " +
                       grouped(v.samples_per_s) + " were delivered");
  judge_stage(f, limits[selected], v);
  if (v.margin < 1.10 && (v.what != bound_by::cpu_starved || v.data_wait_share < 0.05)) {
    v.what = bound_by::balanced;
    v.cause = bound_cause::none;
    v.where = limits[selected].name;
    v.advice = "A single faster stage helps little; deeper prefetch compensates for variation";
  }
  const bool by_workers = f.stages[limits[selected].stage].kind == stage_kind::work;
  if (by_workers && (v.what == bound_by::cpu || v.what == bound_by::cpu_starved)) v.feeders = feeder_gain_of(f);
  if (v.feeders) v.evidence.push_back(v.feeders->text());
  if (!v.agree)
    v.evidence.push_back("the stages that starve indicate " + f.stages[walked].name +
                         " instead: the verdict is uncertain");
  if (v.saturation < 0.95)
    v.evidence.push_back("the slowest stage was busy " + percent(v.saturation) +
                         " of its time: stages alternate in waiting for each other, and deeper prefetch helps");
  if (f.batches < 20)
    v.evidence.push_back("only " + std::to_string(f.batches) + " batches: a reliable verdict requires 20 or more");
  return v;
}

}}   // namespace millrace
