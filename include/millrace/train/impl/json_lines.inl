// Defines what json_lines.hpp declares.
#pragma once

#include <millrace/train/json_lines.hpp>

#include <millrace/base/json_writer.hpp>
#include <millrace/base/numbers.hpp>
#include <millrace/io/file/last_line.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE json_lines::json_lines(json_lines_options options)
    : file_({.path = std::move(options.path)}) {
  detail::repair_last_line(file_);
}

MILLRACE_INLINE void json_lines::write(const row& r) {
  if (r.values.empty() && r.message.empty() && r.nonfinite == 0) return;
  line_ = "{\"step\":";
  detail::append_json_number(line_, r.step);
  if (r.epoch) {
    line_ += ",\"epoch\":";
    detail::append_json_number(line_, *r.epoch);
  }
  line_ += ",\"time\":";
  detail::append_json_number(line_, detail::to_seconds(r.unix_ns));
  std::uint64_t nulls = 0;
  for (const auto& q : r.values) {
    line_ += ',';
    detail::append_json_string(line_, q.name);
    line_ += ':';
    detail::append_json_number(line_, q.value);
    if (!detail::is_finite(q.value)) ++nulls;
  }
  if (const std::uint64_t nonfinite = r.nonfinite > 0 ? r.nonfinite : nulls; nonfinite > 0) {
    line_ += ",\"nonfinite\":";
    detail::append_json_number(line_, nonfinite);
  }
  if (!r.message.empty()) {
    line_ += ",\"message\":";
    detail::append_json_string(line_, r.message);
  }
  line_ += "}\n";
  file_.append(line_);
}

}}  // namespace millrace
