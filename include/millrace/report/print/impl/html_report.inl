// Definitions for html_report.hpp.
#pragma once

#include <millrace/report/print/html_report.hpp>

#include <millrace/report/print/charts.hpp>
#include <millrace/report/print/text_report.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string color_rules() {
  std::string out;
  for (const std::string name :
       {"read", "unpack", "work", "copy", "step", "wait", "starved", "blocked", "first", "second", "third", "other"})
    out += ".line." + name + " { stroke: var(--" + name + "); } .fill." + name + " { fill: var(--" + name +
           "); } .key." + name + " { background: var(--" + name + "); }\n";
  return out;
}

MILLRACE_INLINE std::string key(const char* style, const char* what) {
  return std::string("<span class=\"name\"><i class=\"key ") + style + "\"></i>" + what + "</span>";
}

MILLRACE_INLINE void add_figure(std::string& page, const char* title, const std::string& caption,
                                const std::string& chart) {
  if (chart.empty()) return;
  page += std::string("<figure><figcaption>") + title + "<span>" + caption + "</span></figcaption>\n" + chart +
          "</figure>\n";
}

MILLRACE_INLINE void add_wide_figure(std::string& page, const char* title, const std::string& caption,
                                     const std::string& chart) {
  if (chart.empty()) return;
  page += std::string("<figure class=\"wide\"><figcaption>") + title + "<span>" + caption +
          "</span></figcaption>\n<div class=\"scroll\">" + chart + "</div></figure>\n";
}

MILLRACE_INLINE void add_cell(std::string& page, const std::string& text, const char* style) {
  page += std::string("<td") + (*style ? " class=\"" : "") + style + (*style ? "\">" : ">") + escaped(text) + "</td>";
}

MILLRACE_INLINE void add_stage_table(std::string& page, const run_report& r) {
  page += "<h2>Stages</h2>\n<div class=\"scroll\"><table><tr><th>stage</th><th>limit, samples/s</th><th>busy</th>"
          "<th>starved</th><th>blocked</th><th>p50</th><th>p95</th><th>p99</th></tr>\n";
  for (std::size_t i = 0; i < r.statistics.stages.size(); ++i) {
    const stage_statistics& s = r.statistics.stages[i];
    const std::string remark = stage_remark(r.statistics, s);
    page += remark.empty() ? "<tr>" : "<tr class=\"opens\">";
    add_cell(page, s.concurrency > 1 ? s.name + " x" + std::to_string(s.concurrency) : s.name);
    std::string limit = "-";
    for (const auto& l : r.conclusion.limits.all)
      if (l.stage == i) limit = grouped(l.samples_per_s);
    add_cell(page, limit);
    for (const std::uint64_t ns : {s.busy_ns, s.starved_ns, s.blocked_ns})
      add_cell(page, percent(r.statistics.share(s, ns)));
    for (const double share : {0.5, 0.95, 0.99}) {
      const double ns = s.service_ns.quantile(share);
      add_cell(page, ns > 0 ? time_text(ns) : "-");
    }
    page += "</tr>\n";
    if (!remark.empty()) page += "<tr class=\"more\"><td colspan=\"8\"><p>" + escaped(remark) + "</p></td></tr>\n";
  }
  page += "</table></div>\n";
}

MILLRACE_INLINE void add_gain_html(std::string& page, const run_report& r) {
  if (!r.gains.empty())
    page += "<h2>Predicted gain of each change</h2>\n<div class=\"scroll\"><table><tr><th>change</th><th>predicted</th>"
            "<th class=\"words\">then limited by</th></tr>\n";
  for (const auto& k : r.gains) {
    page += "<tr>";
    add_cell(page, k.change);
    add_cell(page, (k.at_most && k.gain >= 0.0005 ? "at most " : "") + gain_text(k.gain));
    add_cell(page, k.remark.empty() ? k.next : k.next + "; " + k.remark, "words");
    page += "</tr>\n";
  }
  if (!r.gains.empty()) page += "</table></div>\n";
  if (r.predictions.empty()) return;
  page += "<h2>Predicted before, measured now</h2>\n<div class=\"scroll\"><table><tr><th>change</th><th>predicted</th>"
          "<th>measured</th></tr>\n";
  for (const auto& k : r.predictions) {
    page += "<tr>";
    add_cell(page, k.change);
    add_cell(page, grouped(k.predicted_samples_per_s) + " samples/s");
    add_cell(page, grouped(k.measured_samples_per_s) + " samples/s");
    page += "</tr>\n";
  }
  page += "</table></div>\n";
}

MILLRACE_INLINE void add_picture_table(std::string& page, const picture_statistics& p) {
  if (p.pictures() == 0) return;
  page += "<h2>Images</h2>\n<p class=\"soft\">" + counted_text(p.pictures()) + " JPEGs since the start, " +
          three_digits(p.bytes_per_pixel()) + " bytes per pixel" +
          (p.warnings > 0 ? ", warnings of libjpeg: " + counted_text(p.warnings) : std::string()) +
          "</p>\n<div class=\"scroll\"><table><tr><th>decoded by</th><th>JPEGs</th><th>share</th></tr>\n";
  const auto add = [&](const std::string& what, std::uint64_t pictures) {
    page += "<tr>";
    add_cell(page, what);
    add_cell(page, counted_text(pictures));
    add_cell(page, percent(p.share(pictures)));
    page += "</tr>\n";
  };
  add("built-in decoder, several at once", p.own_together);
  add("built-in decoder, alone", p.own_alone);
  add("libjpeg", p.libjpeg());
  for (const auto& r : p.by_libjpeg) add("libjpeg, because: " + r.why, r.pictures);
  page += "<tr><th colspan=\"3\">of them</th></tr>\n";
  add("progressive", p.progressive);
  add("decoded smaller", p.smaller);
  add("crops by entry points", p.by_entries);
  add("crops by restart markers", p.by_restarts);
  add("entry points refused", p.entries_refused);
  add("damaged and accepted", p.damaged);
  page += "</table></div>\n";
}

MILLRACE_INLINE void add_charts(std::string& page, const run_report& r) {
  page += "<div class=\"charts\">\n";
  add_figure(page, "Step time", key("step", "the step") + key("wait", "wait for data"), step_chart(r));
  add_figure(
      page, "Stages",
      "<span class=\"name\">busy in the stage's color</span>" + key("starved", "starved") + key("blocked", "blocked"),
      stage_chart(r));
  add_figure(page, "Queues", key("work", "ready batches in the ring") + key("read", "read ahead"), queue_chart(r));
  std::string caption;
  for (const auto& p : r.scaling)
    if (!p.measured && caption.empty()) caption = key("work", "predicted by replay");
  const auto measured = std::find_if(r.scaling.begin(), r.scaling.end(), [](const auto& p) { return p.measured; });
  if (measured != r.scaling.end())
    caption += key("step", ("measured: " + grouped(measured->samples_per_s) + " samples/s").c_str());
  add_figure(page, "Workers", caption, scaling_chart(r));
  static constexpr const char* titles[] = {"", "One batch", "Two batches", "Three batches"};
  const std::size_t count = batches_to_show(r.events).size();
  std::string keys = key("first", "first");
  if (count > 1) keys += key("second", "second");
  if (count > 2) keys += key("third", "third");
  add_wide_figure(page, titles[count], keys + key("other", "reads and other batches"), gantt_chart(r));
  page += "</div>\n";
}

}   // namespace detail

MILLRACE_INLINE std::string html_report(const run_report& r) {
  using namespace detail;
  const flow_statistics& f = r.statistics;
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  page += escaped(title_of(r)) + "</title>\n<style>" + std::string(page_style) + color_rules() +
          "</style></head><body>\n<h1>" + escaped(r.title) + "</h1>\n";
  const run_origin& o = r.origin;
  if (!o.date.empty()) page += "<p class=\"origin\">" + escaped(o.date) + "</p>\n";
  if (!o.machine.empty()) page += "<p class=\"origin\">" + escaped(o.machine) + "</p>\n";
  if (!o.command.empty()) page += "<p class=\"origin\"><code>" + escaped(o.command) + "</code></p>\n";
  page += "<p class=\"verdict\">" + escaped(r.conclusion.sentence()) + "</p>\n";
  if (!r.conclusion.advice.empty()) page += "<p>" + escaped(r.conclusion.advice) + ".</p>\n";
  page += "<p><strong>" + grouped(r.conclusion.samples_per_s) + " samples/s, data wait " +
          percent(r.conclusion.data_wait_share) + "</strong><br><span class=\"soft\">" + measured_text(f);
  if (const stage_statistics* const step = f.find(stage_kind::step))
    page += "<br>step " + quantiles_text(step->service_ns) + "<br>data wait " + quantiles_text(f.wait_ns);
  page += "</span></p>\n";
  if (!r.conclusion.evidence.empty()) page += "<ul>\n";
  for (const auto& e : r.conclusion.evidence) page += "<li>" + escaped(e) + "</li>\n";
  if (!r.conclusion.evidence.empty()) page += "</ul>\n";
  add_charts(page, r);
  add_stage_table(page, r);
  add_gain_html(page, r);
  add_picture_table(page, r.pictures);
  auto facts = printed_facts(r);
  std::erase_if(facts, [](const auto& fact) { return fact.first == "run" || fact.first == "command"; });   // at the top
  if (!r.counts.empty()) facts.insert(facts.begin(), {"counted", counts_text(r.counts)});
  if (!facts.empty()) page += "<h2>Run</h2>\n<div class=\"scroll\"><table>\n";
  for (const auto& [name, value] : facts) {
    page += "<tr>";
    add_cell(page, name);
    add_cell(page, value, "words");
    page += "</tr>\n";
  }
  if (!facts.empty()) page += "</table></div>\n";
  return page + "</body></html>\n";
}

}}   // namespace millrace
