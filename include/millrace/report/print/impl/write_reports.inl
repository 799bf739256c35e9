// Definitions for write_reports.hpp.
#pragma once

#include <millrace/report/print/write_reports.hpp>

#include <millrace/io/file/append_file.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/report/print/json_report.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/saved_predictions.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE void write_reports(const run_report& r, const std::string& path_without_ending) {
  const std::size_t name_at = path_without_ending.rfind('/') + 1;   // without a slash, npos + 1 is 0
  if (name_at > 1) detail::create_folders(path_without_ending.substr(0, name_at - 1));
  const std::string start = path_without_ending.substr(name_at) + ".";
  detail::remove_abandoned_files(path_without_ending.substr(0, name_at), detail::posix_files(),
                                 [&](std::string_view name) { return name.starts_with(start); });
  const auto write = [&](const char* ending, const std::string& text) {
    detail::atomic_file<> file(path_without_ending + ending, {}, "write_reports");
    file.append(text);
    file.commit();
  };
  write(".txt", text_report(r));
  write(".json", json_report(r));
  write(".html", html_report(r));
  write(".trace.json", chrome_trace(r.events));
  write(".predictions", detail::predictions_text(r));
}

}}   // namespace millrace
