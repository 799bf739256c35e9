// The report as one self-contained HTML page, for phones and wide screens, in light and dark mode.
//
//   write(mr::html_report(mr::report_of(window, std::move(events))));
//
// The page shows the verdict, its evidence, the stages, the predicted gain of each possible change, and the charts of
// report/print/charts.hpp as inline SVG. The page contains neither scripts nor external fonts or images. All names are
// escaped.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/report/run_report.hpp>

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

/// Returns the CSS rules that set the colors of lines, areas and legend symbols. For example, a line of the classes
/// `line` and `read` has the color --read of `page_style`.
std::string color_rules();

std::string key(const char* style, const char* what);

/// Adds a chart. Adds nothing if `chart` is empty.
void add_figure(std::string& page, const char* title, const std::string& caption, const std::string& chart);
/// Adds a chart of double width. If the page is too narrow, the chart has its own horizontal scroll bar.
void add_wide_figure(std::string& page, const char* title, const std::string& caption, const std::string& chart);

void add_cell(std::string& page, const std::string& text, const char* style = "");

void add_stage_table(std::string& page, const run_report& r);

void add_gain_html(std::string& page, const run_report& r);

void add_picture_table(std::string& page, const picture_statistics& p);

void add_charts(std::string& page, const run_report& r);

}   // namespace detail

/// Returns the report as one HTML page.
std::string html_report(const run_report& r);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/print/impl/html_report.inl>
#endif
