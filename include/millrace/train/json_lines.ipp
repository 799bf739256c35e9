// Defines what json_lines.hpp declares.
#pragma once

#include <millrace/train/json_lines.hpp>

#include <millrace/base/json_writer.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void repair_last_line(append_file& file) {
  const std::uint64_t size = file.size_bytes();
  std::string tail;
  while (tail.size() < size && tail.find('\n') == std::string::npos) {
    const std::uint64_t more = std::min<std::uint64_t>(65'536, size - tail.size());
    tail.insert(0, file.read(size - tail.size() - more, more));
  }
  tail.erase(0, tail.rfind('\n') + 1);   // npos + 1 is 0
  if (tail.empty()) return;
  if (is_whole_json_object(tail)) file.append("\n");
  else file.cut(size - tail.size());
}

}  // namespace detail

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
