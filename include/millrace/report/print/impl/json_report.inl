// Definitions for json_report.hpp.
#pragma once

#include <millrace/report/print/json_report.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE trace_event_writer::trace_event_writer() {
  out_.open('{');
  out_.add("displayTimeUnit", std::string("ms"));
  out_.open("traceEvents", '[');
  name("process_name", 1, [&] { out_.add("name", std::string("millrace")); });
}

MILLRACE_INLINE std::string trace_event_writer::take() {
  out_.close(']');
  out_.close('}');
  return out_.take() + "\n";
}

MILLRACE_INLINE void trace_event_writer::name_track(std::uint32_t track, const std::string& called) {
  name("thread_name", thread_of(track), [&] { out_.add("name", called); });
  name("thread_sort_index", thread_of(track), [&] { out_.add("sort_index", track); });
}

MILLRACE_INLINE void trace_event_writer::span(const timeline_span& s) {
  begin("X", s.name, thread_of(s.track));
  out_.add("ts", in_us(s.start_ns));
  out_.add("dur", in_us(s.end_ns - s.start_ns));
  if (s.batch != timeline_span::no_batch) {
    out_.open("args", '{');
    out_.add("batch", s.batch);
    out_.close('}');
  }
  out_.close('}');
}

MILLRACE_INLINE void trace_event_writer::flow(const char* phase, const timeline_span& s) {
  begin(phase, "batch", thread_of(s.track));
  out_.add("cat", std::string("batch"));
  out_.add("id", s.batch);
  out_.add("ts", in_us(s.start_ns + (s.end_ns - s.start_ns) / 2));
  if (*phase == 'f') out_.add("bp", std::string("e"));
  out_.close('}');
}

MILLRACE_INLINE void trace_event_writer::counter(const timeline_counter& c) {
  begin("C", c.name, 1);
  out_.add("ts", in_us(c.at_ns));
  out_.open("args", '{');
  out_.add("value", c.value);
  out_.close('}');
  out_.close('}');
}

MILLRACE_INLINE void trace_event_writer::begin(const std::string& phase, const std::string& called,
                                               std::uint32_t thread) {
  out_.open('{');
  out_.add("ph", phase);
  out_.add("name", called);
  out_.add("pid", 1);
  out_.add("tid", thread);
}

}   // namespace detail

MILLRACE_INLINE std::string chrome_trace(const timeline& t) {
  detail::trace_event_writer out;
  for (std::uint32_t i = 0; i < t.tracks.size(); ++i) out.name_track(i, t.tracks[i]);
  std::map<std::uint64_t, std::map<std::string, const timeline_span*>> batches;   // the last span of each name
  for (const auto& s : t.spans) {
    if (s.end_ns < s.start_ns) continue;
    out.span(s);
    if (s.batch == timeline_span::no_batch) continue;
    const timeline_span*& last = batches[s.batch][s.name];
    if (!last || last->end_ns < s.end_ns) last = &s;
  }
  for (const auto& [batch, by_name] : batches) {
    std::vector<const timeline_span*> stops;
    for (const auto& [name, span] : by_name) stops.push_back(span);
    if (stops.size() < 2) continue;
    const auto middle = [](const timeline_span& s) { return s.start_ns + (s.end_ns - s.start_ns) / 2; };
    std::sort(stops.begin(), stops.end(), [&](const auto* a, const auto* b) { return middle(*a) < middle(*b); });
    for (const auto* s : stops) out.flow(s == stops.front() ? "s" : s == stops.back() ? "f" : "t", *s);
  }
  for (const auto& c : t.counters) out.counter(c);
  return out.take();
}

namespace detail {

MILLRACE_INLINE void add_quantiles(json_writer& out, std::string_view name, const distribution& d) {
  out.open(name, '{');
  out.add("count", d.count());
  out.add("mean", d.mean());
  out.add("p50", d.quantile(0.50));
  out.add("p95", d.quantile(0.95));
  out.add("p99", d.quantile(0.99));
  out.close('}');
}

/// Adds an array of objects; `add_members` adds the members of each object.
template <class Items, class Add>
void add_objects(json_writer& out, std::string_view name, const Items& items, Add add_members) {
  out.open(name, '[');
  for (const auto& item : items) {
    out.open('{');
    add_members(item);
    out.close('}');
  }
  out.close(']');
}

MILLRACE_INLINE void add_stage(json_writer& out, const run_report& r, std::size_t index) {
  const stage_statistics& s = r.statistics.stages[index];
  out.open('{');
  out.add("name", s.name);
  out.add("kind", std::string(name_of(s.kind)));
  out.add("seats", s.concurrency);
  out.add("busy_ns", s.busy_ns);
  out.add("starved_ns", s.starved_ns);
  out.add("blocked_ns", s.blocked_ns);
  out.add("cpu_ns", s.cpu_ns > 0 ? std::optional(s.cpu_ns) : std::nullopt);
  out.add("run_delay_ns", s.cpu_ns > 0 ? std::optional(s.run_delay_ns) : std::nullopt);
  out.add("items", s.items);
  out.add("bytes", s.bytes);
  for (const auto& l : r.conclusion.limits.all)
    if (l.stage == index) out.add("limit_samples_per_s", l.samples_per_s);
  add_quantiles(out, "service_ns", s.service_ns);
  add_objects(out, "parts", s.phases, [&out](const phase_statistics& p) {
    out.add("name", p.name);
    out.add("busy_ns", p.busy_ns);
    add_quantiles(out, "service_ns", p.service_ns);
  });
  out.close('}');
}

MILLRACE_INLINE void add_pictures(json_writer& out, const picture_statistics& p) {
  out.open("pictures", '{');
  out.add("jpegs", p.pictures());
  out.add("own_together", p.own_together);
  out.add("own_alone", p.own_alone);
  out.add("libjpeg", p.libjpeg());
  out.open("libjpeg_reasons", '{');
  for (const auto& r : p.by_libjpeg) out.add(r.why, r.pictures);
  out.close('}');
  out.add("smaller", p.smaller);
  out.add("progressive", p.progressive);
  out.add("by_entries", p.by_entries);
  out.add("by_restarts", p.by_restarts);
  out.add("entries_refused", p.entries_refused);
  out.add("damaged", p.damaged);
  out.add("warnings", p.warnings);
  out.add("bytes", p.bytes);
  out.add("pixels", p.pixels);
  out.add("bytes_per_pixel", p.pixels > 0 ? std::optional(p.bytes_per_pixel()) : std::nullopt);
  out.close('}');
}

MILLRACE_INLINE void json_origin(json_writer& out, const run_origin& origin) {
  const auto unless_empty = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  out.add("date", unless_empty(origin.date));
  out.add("command", unless_empty(origin.command));
  out.add("machine", unless_empty(origin.machine));
}

MILLRACE_INLINE void add_verdict(json_writer& out, const verdict& v) {
  out.open("verdict", '{');
  out.add("sentence", v.sentence());
  out.add("bound_by", v.name());
  out.add("cause", v.cause_name());
  out.add("where", v.where);
  out.add("limit", v.limit);
  out.add("next", v.next);
  out.add("margin", v.margin);
  out.add("samples_per_s", v.samples_per_s);
  out.add("saturation", v.saturation);
  out.add("data_wait_share", v.data_wait_share);
  out.add("agree", v.agree);
  out.add("advice", v.advice);
  out.open("evidence", '[');
  for (const auto& e : v.evidence) out.add_text(e);
  out.close(']');
  if (v.feeders) {
    out.open("feeders", '{');
    out.add("times", v.feeders->times);
    out.add("gbit_per_s", v.feeders->gbit_per_s);
    out.add("feeder_cores", v.feeders->feeder_cores);
    out.add("row_bytes", v.feeders->row_bytes);
    out.add("prepare_ns", v.feeders->prepare_ns);
    out.add("receive_ns", v.feeders->receive_ns);
    out.add("next", v.feeders->next);
    out.close('}');
  }
  out.close('}');
}

MILLRACE_INLINE void add_statistics(json_writer& out, const run_report& r) {
  const flow_statistics& f = r.statistics;
  out.open("figures", '{');
  out.add("wall_ns", f.wall_ns);
  out.add("batches", f.batches);
  out.add("samples", f.samples);
  out.add("warm_up_batches", f.warm_up_batches);
  out.add("batch_samples", f.batch_samples);
  add_quantiles(out, "wait_ns", f.wait_ns);
  out.add("device_gap_ns", f.device_gap_ns);
  out.add("storage_bytes", f.storage_bytes);
  out.add("reads_busy_ns", f.reads_at_once.busy_ns());
  out.add("in_turn_ns", f.in_turn_ns);
  out.add("in_turn_samples", f.in_turn_samples);
  out.add("passed_on_samples", f.passed_on_samples);
  out.add("reads_outstanding", f.reads_at_once.mean_outstanding());
  out.add("usable_cores", f.usable_cores);
  out.add("throttled_ns", f.throttled_ns);
  out.add("process_cpu_ns", f.process_cpu_ns > 0 ? std::optional(f.process_cpu_ns) : std::nullopt);
  out.add("run_delay_ns", f.run_delay_ns);
  out.add("host_slots", f.host_slots);
  out.add("device_slots", f.device_slots);
  out.add("read_ahead_bytes", f.read_ahead_bytes);
  out.open("stages", '[');
  for (std::size_t i = 0; i < f.stages.size(); ++i) add_stage(out, r, i);
  out.close(']');
  add_objects(out, "queues", f.queues, [&out](const auto& q) {
    out.add("name", q.name);
    out.add("unit", q.unit);
    out.add("mean", q.mean);
    out.add("bound", q.bound);
  });
  out.close('}');
}

MILLRACE_INLINE void add_predictions(json_writer& out, const run_report& r) {
  add_objects(out, "gains", r.gains, [&out](const knob_gain& k) {
    out.add("change", k.change);
    out.add("gain", k.gain);
    out.add("at_most", k.at_most);
    out.add("next", k.next);
    out.add("remark", k.remark);
  });
  add_objects(out, "scaling", r.scaling, [&out](const run_report::point& p) {
    out.add("workers", p.workers);
    out.add("samples_per_s", p.samples_per_s);
    out.add("measured", p.measured);
  });
  add_objects(out, "kept_predictions", r.predictions, [&out](const run_report::checked_prediction& k) {
    out.add("change", k.change);
    out.add("predicted_samples_per_s", k.predicted_samples_per_s);
    out.add("measured_samples_per_s", k.measured_samples_per_s);
  });
}

}   // namespace detail

MILLRACE_INLINE std::string json_report(const run_report& r) {
  detail::json_writer out;
  out.open('{');
  out.add("title", r.title);
  detail::json_origin(out, r.origin);
  detail::add_verdict(out, r.conclusion);
  detail::add_statistics(out, r);
  detail::add_predictions(out, r);
  detail::add_pictures(out, r.pictures);
  out.open("counts", '{');
  for (const event_count& c : r.counts) out.add(c.what, c.times);
  out.close('}');
  out.open("facts", '{');
  for (const auto& [name, value] : r.facts) out.add(name, value);
  out.close('}');
  out.close('}');
  return out.take() + "\n";
}

}}   // namespace millrace
