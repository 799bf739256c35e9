// A log file with one JSON object per line, for scripts: pandas.read_json(path, lines=True), jq.
//
//   mr::log out(mr::json_lines("run.jsonl"));
//   out.push({.step = 7, .epoch = 0, .values = {{"loss", 0.25}}});
//   // {"step":7,"epoch":0,"time":1763725286.25,"loss":0.25}
//
// NaN and infinities become null; "nonfinite" is the number of values that were not finite. Images are skipped.
// Rows are appended to an existing file. If the last line of this file is truncated (power failure, full disk), the
// constructor removes the line. If only the line end is missing, the constructor adds it. A line is in the file when
// write() returns, and on the disk within ten seconds.
// Errors: setup_error if another log uses the file; io_error if an operation on the file fails. Threads: the log's
// writer thread.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/train/log.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The path of the file.
struct json_lines_options {
  std::string path{};
};

/// A sink that appends rows to a JSON Lines file.
class json_lines final : public sink {
 public:
  /// Opens the file and repairs its last line. Throws setup_error if another log uses the file. Throws io_error if an
  /// operation on the file fails.
  explicit json_lines(json_lines_options options);
  explicit json_lines(std::string path) : json_lines(json_lines_options{.path = std::move(path)}) {}

  const char* name() const noexcept override { return "JSON lines"; }

  MILLRACE_INLINE void write(const row& r) override;

  void tick(instant now) override { file_.sync_when_due(now.steady_ns, sync_ns); }
  void close() override { file_.sync(); }

 private:
  detail::append_file file_;
  static constexpr std::int64_t sync_ns = 10'000'000'000;   // a crash of the machine loses at most 10 s of rows
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/train/impl/json_lines.inl>
#endif
