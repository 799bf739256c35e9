// Definitions for json_lines.hpp.
#pragma once

#include <millrace/train/json_lines.hpp>

#include <millrace/base/half.hpp>
#include <millrace/base/json_writer.hpp>
#include <millrace/io/file/append_file.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE json_lines::json_lines(json_lines_options options) : file_({.path = std::move(options.path)}) {
  detail::repair_last_line(file_);
}

MILLRACE_RARE void json_lines::write(const row& r) {
  if (r.values.empty() && r.message.empty() && r.nonfinite == 0) return;
  detail::json_writer line;
  line.open('{');
  line.add("step", r.step);
  if (r.epoch) line.add("epoch", *r.epoch);
  line.add("time", detail::to_seconds(r.unix_ns));
  std::uint64_t nulls = 0;
  for (const auto& q : r.values) {
    line.add(q.name, q.value);
    nulls += !detail::is_finite(q.value);
  }
  if (const std::uint64_t nonfinite = r.nonfinite > 0 ? r.nonfinite : nulls; nonfinite > 0)
    line.add("nonfinite", nonfinite);
  if (!r.message.empty()) line.add("message", r.message);
  line.close('}');
  file_.append(line.take() + '\n');
}

}}   // namespace millrace
