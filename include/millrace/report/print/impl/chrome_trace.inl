// Definitions for chrome_trace.hpp.
#pragma once

#include <millrace/report/print/chrome_trace.hpp>

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

}}   // namespace millrace
