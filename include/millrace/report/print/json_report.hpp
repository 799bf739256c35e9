// The report in a format for programs: one JSON object with the content of the text report, in base units.
//
//   std::string json = mr::json_report(mr::report_of(window));
//   // {"title":"...",...,"verdict":{"sentence":"...","bound_by":"CPU-bound",...,"margin":1.63,...},
//   //  "figures":{...},"gains":[...],...}
//
// Units: times in nanoseconds (_ns), sizes in bytes (_bytes), rates per second (_per_s), shares 0..1. Unknown values
// are null.
// Errors: none. Threads: the function is pure; any thread may call it. Source: RFC 8259.
#pragma once

#include <millrace/base/json_writer.hpp>
#include <millrace/measure/values/distribution.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/report/run_report.hpp>

#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

// Converts a timeline to Chrome's trace events, which ui.perfetto.dev and chrome://tracing display.
//
//   write(mr::chrome_trace(events));      // {"displayTimeUnit":"ms","traceEvents":[...]}
//
// The viewer shows each track (the spans of a thread or of a stream) and each counter on its own line. Tracks are in
// the timeline's order. Arrows show the path of each batch, from its last span in each stage to its last span in the
// next stage.
// Errors: none; spans that end before they start are omitted. Threads: the function is pure; any thread may call it.
// Format: Trace Event Format (Google, 2016) with the phases X (complete), M (metadata), C (counter), and s, t, f
// (flow). Times are in microseconds.

namespace detail {

/// Writes trace events. All events belong to process 1 of the trace. Track t is thread t + 2, because thread 0 is the
/// process itself, and thread 1 is its main thread.
class trace_event_writer {
 public:
  trace_event_writer();
  std::string take();

  void name_track(std::uint32_t track, const std::string& called);
  void span(const timeline_span& s);
  /// Writes a flow event, which is one point of an arrow. The time of the event is the middle of the span, because the
  /// viewer connects the arrow to the span that encloses this time.
  void flow(const char* phase, const timeline_span& s);
  void counter(const timeline_counter& c);

 private:
  static double in_us(std::int64_t ns) noexcept { return 1e-3 * static_cast<double>(ns); }
  static std::uint32_t thread_of(std::uint32_t track) noexcept { return track + 2; }
  template <class Arguments>
  void name(const char* what, std::uint32_t thread, const Arguments& arguments) {
    begin("M", what, thread);
    out_.open("args", '{');
    arguments();
    out_.close('}');
    out_.close('}');
  }
  void begin(const std::string& phase, const std::string& called, std::uint32_t thread);

  json_writer out_;
};

}   // namespace detail

/// Returns the timeline as JSON text in the Trace Event Format.
std::string chrome_trace(const timeline& t);

namespace detail {

void add_quantiles(json_writer& out, std::string_view name, const distribution& d);

void add_stage(json_writer& out, const run_report& r, std::size_t index);

void add_pictures(json_writer& out, const picture_statistics& p);

}   // namespace detail

/// Returns the report as one JSON object, followed by a line end.
std::string json_report(const run_report& r);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/json_report.inl>
#endif
