// The report as one HTML page: a file that needs nothing else, readable on a phone and a wide screen, light and dark.
//
//   write(mr::html_report(mr::report_of(window, std::move(events))));
//
// The page has the verdict, its evidence, the stages, the gain of each change, and the charts of report/charts.hpp as
// inline SVG. It has no script, and no font or picture from elsewhere. All names are escaped.
// Errors: none. Threads: a pure function.
#pragma once

#include <millrace/report/charts.hpp>
#include <millrace/report/text_report.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

inline constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --back: #fff; --card: #f5f6f8; --text: #1b1f24; --soft: #59636e; --rule: #d5dae0;
  --read: #2f6fb3; --unpack: #7c55b8; --work: #c2660c; --copy: #1f8a70; --step: #4d6a86; --wait: #d1344b;
  --starved: #d5dae0; --blocked: #a3adb8; --first: #2f6fb3; --second: #c2660c; --third: #1f8a70; --other: #dfe3e8; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --card: #1d2227; --text: #e8ebee; --soft: #a0abb6;
  --rule: #3a424a; --read: #6aa9ea; --unpack: #b394ea; --work: #f0a04b; --copy: #4cc3a5; --step: #8fb0cf;
  --wait: #ff6b7d; --starved: #3a424a; --blocked: #65707b; --first: #6aa9ea; --second: #f0a04b; --third: #4cc3a5;
  --other: #333a41; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1rem; font-weight: 600; color: var(--soft); margin: 0; }
h2 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
.verdict { font-size: 1.5rem; line-height: 1.25; font-weight: 600; margin: .75rem 0 .5rem; }
.soft, .origin { color: var(--soft); }
.origin { margin: 0; }
.charts { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
@media (min-width: 48rem) { .wide { grid-column: span 2; } }
.wide svg { min-width: 560px; max-width: none; }
figure { margin: 0; padding: .75rem; background: var(--card); border-radius: .5rem; min-width: 0; }
figcaption { font-weight: 600; }
figcaption span { font-weight: 400; color: var(--soft); font-size: .9rem; display: block; }
figure { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 280px; max-width: 32rem; height: auto; margin: 0 auto; }
svg text { fill: var(--soft); font: 14px system-ui, sans-serif; }
.rule { stroke: var(--rule); stroke-width: 1; fill: none; }
.line { fill: none; stroke-width: 2; }
figcaption .name { display: inline-block; margin-right: .8em; font-size: 1em; }
.key { display: inline-block; width: .7em; height: .7em; border-radius: .15em; margin-right: .35em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; white-space: normal; }
th:first-child, td:first-child, .words { text-align: left; }
td:first-child, td.words { white-space: normal; }
td.words { min-width: 9rem; overflow-wrap: anywhere; }
tr.opens td { border-bottom: 0; padding-bottom: 0; }
tr.more td { padding-top: 0; }
tr.more p { margin: 0; position: sticky; left: .6rem; width: fit-content; max-width: calc(100vw - 4rem);
  color: var(--soft); font-size: .875rem; }
code { font: .875rem/1.4 ui-monospace, monospace; }
@media (max-width: 30rem) { body { padding: .75rem; } table, tr.more p { font-size: .8rem; }
  th, td { padding: .25rem; } td.words { min-width: 6rem; } tr.more p { left: .25rem; } }
)";

/// Returns the style rules that color lines, areas and keys by name.
inline std::string color_rules() {
  std::string out;
  for (const std::string name : {"read", "unpack", "work", "copy", "step", "wait", "starved", "blocked", "first",
                                 "second", "third", "other"})
    out += ".line." + name + " { stroke: var(--" + name + "); } .fill." + name + " { fill: var(--" + name +
           "); } .key." + name + " { background: var(--" + name + "); }\n";
  return out;
}

inline std::string key(const char* style, const char* what) {
  return std::string("<span class=\"name\"><i class=\"key ") + style + "\"></i>" + what + "</span>";
}

/// Adds a chart; nothing if it is empty.
inline void add_figure(std::string& page, const char* title, const std::string& caption, const std::string& chart) {
  if (chart.empty()) return;
  page += std::string("<figure><figcaption>") + title + "<span>" + caption + "</span></figcaption>\n" + chart +
          "</figure>\n";
}
/// Adds a chart that is twice as wide if the page has the space, and scrolls by itself otherwise.
inline void add_wide_figure(std::string& page, const char* title, const std::string& caption,
                            const std::string& chart) {
  if (chart.empty()) return;
  page += std::string("<figure class=\"wide\"><figcaption>") + title + "<span>" + caption +
          "</span></figcaption>\n<div class=\"scroll\">" + chart + "</div></figure>\n";
}

inline void add_cell(std::string& page, const std::string& text, const char* style = "") {
  page += std::string("<td") + (*style ? " class=\"" : "") + style + (*style ? "\">" : ">") + escaped(text) + "</td>";
}

inline void add_stage_table(std::string& page, const run_report& r) {
  page += "<h2>Stages</h2>\n<div class=\"scroll\"><table><tr><th>stage</th><th>limit, samples/s</th><th>busy</th>"
          "<th>starved</th><th>blocked</th><th>p50</th><th>p95</th><th>p99</th></tr>\n";
  for (std::size_t i = 0; i < r.figures.stages.size(); ++i) {
    const stage_figures& s = r.figures.stages[i];
    const std::string remark = stage_remark(r.figures, s);
    page += remark.empty() ? "<tr>" : "<tr class=\"opens\">";
    add_cell(page, s.concurrency > 1 ? s.name + " x" + std::to_string(s.concurrency) : s.name);
    std::string limit = "-";
    for (const auto& l : r.conclusion.limits.all)
      if (l.stage == i) limit = whole(l.samples_per_s);
    add_cell(page, limit);
    for (const std::uint64_t ns : {s.busy_ns, s.starved_ns, s.blocked_ns})
      add_cell(page, percent(r.figures.share(s, ns)));
    for (const double share : {0.5, 0.95, 0.99}) {
      const double ns = s.service_ns.quantile(share);
      add_cell(page, ns > 0 ? time_text(ns) : "-");
    }
    page += "</tr>\n";
    if (!remark.empty()) page += "<tr class=\"more\"><td colspan=\"8\"><p>" + escaped(remark) + "</p></td></tr>\n";
  }
  page += "</table></div>\n";
}

inline void add_gain_table(std::string& page, const run_report& r) {
  if (!r.gains.empty())
    page += "<h2>What each change would bring</h2>\n<div class=\"scroll\"><table><tr><th>change</th><th>predicted</th>"
            "<th class=\"words\">then limited by</th></tr>\n";
  for (const auto& k : r.gains) {
    page += "<tr>";
    add_cell(page, k.change);
    add_cell(page, (k.at_most && k.gain >= 0.0005 ? "at most " : "") + gain_text(k.gain));
    add_cell(page, k.remark.empty() ? k.next : k.next + "; " + k.remark, "words");
    page += "</tr>\n";
  }
  if (!r.gains.empty()) page += "</table></div>\n";
  if (r.kept.empty()) return;
  page += "<h2>Predicted before, measured now</h2>\n<div class=\"scroll\"><table><tr><th>change</th><th>predicted</th>"
          "<th>measured</th></tr>\n";
  for (const auto& k : r.kept) {
    page += "<tr>";
    add_cell(page, k.change);
    add_cell(page, whole(k.predicted_samples_per_s) + " samples/s");
    add_cell(page, whole(k.measured_samples_per_s) + " samples/s");
    page += "</tr>\n";
  }
  page += "</table></div>\n";
}

inline void add_picture_table(std::string& page, const picture_figures& p) {
  if (p.pictures() == 0) return;
  page += "<h2>Pictures</h2>\n<p class=\"soft\">" + counted_text(p.pictures()) + " JPEGs since the start, " +
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
  add("damaged and accepted", p.damaged);
  page += "</table></div>\n";
}

inline void add_charts(std::string& page, const run_report& r) {
  page += "<div class=\"charts\">\n";
  add_figure(page, "Step time", key("step", "the step") + key("wait", "wait for data"), step_chart(r));
  add_figure(page, "Stages", "<span class=\"name\">busy in the stage's colour</span>" + key("starved", "starved") +
                                 key("blocked", "blocked"),
             stage_chart(r));
  add_figure(page, "Queues", key("work", "ready batches in the ring") + key("read", "read ahead"), queue_chart(r));
  std::string said;
  for (const auto& p : r.scaling)
    if (!p.measured && said.empty()) said = key("work", "predicted by replay");
  const auto measured = std::find_if(r.scaling.begin(), r.scaling.end(), [](const auto& p) { return p.measured; });
  if (measured != r.scaling.end())
    said += key("step", ("measured: " + whole(measured->samples_per_s) + " samples/s").c_str());
  add_figure(page, "Workers", said, scaling_chart(r));
  static constexpr const char* titles[] = {"", "One batch", "Two batches", "Three batches"};
  const std::size_t shown = batches_to_show(r.events).size();
  std::string keys = key("first", "first");
  if (shown > 1) keys += key("second", "second");
  if (shown > 2) keys += key("third", "third");
  add_wide_figure(page, titles[shown], keys + key("other", "reads and other batches"), gantt_chart(r));
  page += "</div>\n";
}

}  // namespace detail

/// Returns the report as one HTML page.
inline std::string html_report(const run_report& r) {
  using namespace detail;
  const flow_figures& f = r.figures;
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
  page += "<p><strong>" + whole(r.conclusion.samples_per_s) + " samples/s, data wait " +
          percent(r.conclusion.data_wait_share) + "</strong><br><span class=\"soft\">" + measured_text(f);
  if (const stage_figures* const step = f.find(stage_kind::step))
    page += "<br>step " + quantiles_text(step->service_ns) + "<br>data wait " + quantiles_text(f.wait_ns);
  page += "</span></p>\n";
  if (!r.conclusion.evidence.empty()) page += "<ul>\n";
  for (const auto& e : r.conclusion.evidence) page += "<li>" + escaped(e) + "</li>\n";
  if (!r.conclusion.evidence.empty()) page += "</ul>\n";
  add_charts(page, r);
  add_stage_table(page, r);
  add_gain_table(page, r);
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

}}  // namespace millrace
