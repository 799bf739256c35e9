// Definitions for text_report.hpp.
#pragma once

#include <millrace/report/print/text_report.hpp>

#include <millrace/base/error.hpp>

#include <map>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string report_cell(std::string text, std::size_t width, bool right) {
  if (text.size() >= width) return text;
  const std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

MILLRACE_INLINE std::string quantiles_text(const distribution& d) {
  return "p50 " + time_text(d.quantile(0.5)) + "  p95 " + time_text(d.quantile(0.95)) + "  p99 " +
         time_text(d.quantile(0.99));
}

MILLRACE_INLINE std::string measured_text(const flow_statistics& f) {
  return time_text(static_cast<double>(f.wall_ns)) + ", " + grouped(static_cast<double>(f.batches)) + " batches of " +
         std::to_string(f.batch_samples) + "; " + grouped(static_cast<double>(f.warm_up_batches)) +
         " before them excluded";
}

MILLRACE_INLINE std::string machine_text(const flow_statistics& f) {
  return std::to_string(f.usable_cores) + " usable cores, " +
         (f.throttled_ns > 0 ? "throttled for " + time_text(static_cast<double>(f.throttled_ns)) : "not throttled") +
         "; threads that could run waited " + time_text(static_cast<double>(f.run_delay_ns)) + " for a core";
}

MILLRACE_INLINE std::string title_of(const run_report& r) {
  return r.origin.date.empty() ? r.title : r.title + ", " + r.origin.date;
}

MILLRACE_INLINE std::string wrapped(std::string line, std::string_view words, std::size_t indent,
                                    std::string_view marks) {
  std::string out;
  while (!words.empty()) {
    std::size_t blank = words.find(' ');
    while (blank != std::string_view::npos && blank > 0 && !marks.empty() &&
           marks.find(words[blank - 1]) == std::string_view::npos)
      blank = words.find(' ', blank + 1);
    const std::string_view word = words.substr(0, blank);
    if (line.size() + word.size() > 110 && line.size() > indent) {
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
      line = std::string(indent, ' ');
    }
    line += word;
    if (blank != std::string_view::npos) line += ' ';
    words.remove_prefix(blank == std::string_view::npos ? words.size() : blank + 1);
  }
  return out + line + "\n";
}

MILLRACE_INLINE std::string picture_lines_text(const picture_statistics& p) {
  const auto part = [&](const char* what, std::uint64_t pictures) {
    return what + counted_text(pictures) + " (" + percent(p.share(pictures)) + ")";
  };
  std::string text = counted_text(p.pictures()) + part(" JPEGs: built-in decoder, several at once ", p.own_together) +
                     part(", alone ", p.own_alone) + part("; libjpeg ", p.libjpeg());
  for (const auto& r : p.by_libjpeg)
    text += (&r == &p.by_libjpeg.front() ? ": " : ", ") + r.why + " " + counted_text(r.pictures);
  text += part("; progressive ", p.progressive);
  if (p.smaller > 0) text += part("; decoded smaller ", p.smaller);
  if (p.by_entries > 0) text += part("; crops by entry points ", p.by_entries);
  if (p.by_restarts > 0) text += part("; crops by restart markers ", p.by_restarts);
  if (p.entries_refused > 0) text += part("; entry points refused ", p.entries_refused);
  if (p.damaged > 0) text += part("; damaged and accepted ", p.damaged);
  if (p.warnings > 0) text += "; warnings of libjpeg " + counted_text(p.warnings);
  return text + "; " + three_digits(p.bytes_per_pixel()) + " bytes per pixel";
}

MILLRACE_INLINE std::string counts_text(const std::vector<event_count>& counts) {
  std::string text;
  for (const event_count& c : counts)
    text += (text.empty() ? "" : "; ") + std::string(c.what) + " " + counted_text(c.times);
  return text;
}

MILLRACE_INLINE std::string stage_remark(const flow_statistics& f, const stage_statistics& s) {
  std::string text;
  const auto say = [&](const std::string& more) {
    if (!text.empty()) text += ", ";
    text += more;
  };
  const double busy_s = 1e-9 * static_cast<double>(s.kind == stage_kind::read ? f.reads_at_once.busy_ns() : s.busy_ns);
  if (s.bytes > 0 && busy_s > 0) say(bytes_text(static_cast<double>(s.bytes) / busy_s) + "/s");
  if (s.kind == stage_kind::read) {
    if (s.items > 0) say(bytes_text(static_cast<double>(s.bytes) / static_cast<double>(s.items)) + " each");
    say(three_digits(f.reads_at_once.mean_outstanding()) + " outstanding");
    if (f.storage_bytes && s.bytes > 0)
      say(percent(static_cast<double>(*f.storage_bytes) / static_cast<double>(s.bytes)) + " from storage");
  }
  for (const auto& p : s.phases)
    if (s.busy_ns > 0) say(p.name + " " + percent(static_cast<double>(p.busy_ns) / static_cast<double>(s.busy_ns)));
  if (s.cpu_ns > 0 && s.busy_ns > 0)
    say("cpu/wall " + fixed(static_cast<double>(s.cpu_ns) / static_cast<double>(s.busy_ns), 2));
  return text;
}

}   // namespace detail

MILLRACE_INLINE std::string text_report(const run_report& r) {
  using namespace detail;
  const flow_statistics& f = r.statistics;
  const verdict& v = r.conclusion;
  std::string out = "VERDICT  " + v.sentence() + "\n";
  if (!v.advice.empty()) out += wrapped("         ", v.advice, 9);
  out += "measured   " + measured_text(f) + "\n";
  out += "throughput " + grouped(v.samples_per_s) + " samples/s, data wait " + percent(v.data_wait_share) + "\n";
  if (const stage_statistics* const step = f.find(stage_kind::step)) {
    out += "step       " + quantiles_text(step->service_ns) + "\n";
    out += "data wait  " + quantiles_text(f.wait_ns) + "\n";
  }
  out += "stage             limit/s    busy starved blocked       p50       p99\n";
  for (std::size_t i = 0; i < f.stages.size(); ++i) {
    const stage_statistics& s = f.stages[i];
    std::string limit = "-";
    for (const auto& l : v.limits.all)
      if (l.stage == i) limit = grouped(l.samples_per_s);
    const std::string times = s.concurrency > 1 ? " x" + std::to_string(s.concurrency) : std::string();
    std::string line = " " + report_cell(s.name + times, 14);
    line += report_cell(limit, 10, true);
    for (const std::uint64_t ns : {s.busy_ns, s.starved_ns, s.blocked_ns})
      line += report_cell(percent(f.share(s, ns)), 8, true);
    for (const double share : {0.5, 0.99}) {
      const double ns = s.service_ns.quantile(share);
      line += report_cell(ns > 0 ? time_text(ns) : "-", 10, true);
    }
    const std::string remark = stage_remark(f, s);
    out += remark.empty() ? line + "\n" : wrapped(line + "  ", remark, line.size() + 2, ",");
  }
  if (!f.queues.empty()) {
    out += "queues    ";
    for (const auto& q : f.queues)
      out += " " + q.name + " " + three_digits(q.mean) + " of " + three_digits(q.bound) + " " + q.unit +
             (&q == &f.queues.back() ? "" : ";");
    out += "\n";
  }
  if (!r.gains.empty()) out += "gain of each change (predicted; with the next limit)\n";
  std::map<std::string, std::string> nothing;   // changes without gain, by the limit after the change
  for (const auto& k : r.gains) {
    if (k.gain < 0.0005 && (k.at_most || k.remark.empty())) {
      std::string& changes = nothing[k.next];
      changes += (changes.empty() ? "" : "; ") + k.change;
      continue;
    }
    out += " " + report_cell(k.change, 28) + report_cell((k.at_most ? "<= " : "") + gain_text(k.gain), 12, true) +
           "  " + k.next + (k.remark.empty() ? "" : "; " + k.remark) + "\n";
  }
  for (const auto& [next, changes] : nothing) out += wrapped(" +0.0 %, still " + next + ": ", changes, 3, ";");
  for (const auto& k : r.predictions)
    out += " predicted before: " + k.change + " " + grouped(k.predicted_samples_per_s) + " samples/s, measured " +
           grouped(k.measured_samples_per_s) + "\n";
  if (!v.evidence.empty()) out += "evidence\n";
  for (const auto& e : v.evidence) out += wrapped(" ", e, 3);
  if (r.pictures.pictures() > 0) out += wrapped("images     ", picture_lines_text(r.pictures), 11, ":,;");
  if (!r.counts.empty()) out += wrapped("counted    ", counts_text(r.counts), 11, ";");
  for (const auto& [name, value] : printed_facts(r)) out += wrapped(report_cell(name, 10) + " ", value, 11);
  return printable_text(out);
}

}}   // namespace millrace
