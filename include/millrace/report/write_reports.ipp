// Defines what write_reports.hpp declares.
#pragma once

#include <millrace/report/write_reports.hpp>

#include <millrace/base/error.hpp>
#include <millrace/report/chrome_trace.hpp>
#include <millrace/report/html_report.hpp>
#include <millrace/report/saved_predictions.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE void write_reports(const run_report& r, const std::string& path_without_ending) {
  const auto write = [&](const char* ending, const std::string& text) {
    const std::string path = path_without_ending + ending;
    std::FILE* const file = std::fopen(path.c_str(), "we");
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const int reason = errno;
    const bool closed = file && std::fclose(file) == 0;
    if (!written || !closed)
      throw io_error("cannot write the report " + printable(path) + ": " + std::strerror(written ? errno : reason),
                     "Check the folder, its permissions and the space that is left");
  };
  write(".txt", text_report(r));
  write(".json", json_report(r));
  write(".html", html_report(r));
  write(".trace.json", chrome_trace(r.events));
  write(".predictions", detail::predictions_text(r));
}

}}  // namespace millrace
