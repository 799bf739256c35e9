// Definitions for sink.hpp.
#pragma once

#include <millrace/train/sink.hpp>

#include <millrace/base/text.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::optional<double> row::find(std::string_view name) const noexcept {
  for (const auto& q : values)
    if (q.name == name) return q.value;
  return {};
}

MILLRACE_INLINE void row::clean_text() {
  for (auto& q : values) detail::clean_utf8(q.name);
  for (auto& i : images) detail::clean_utf8(i.name);
  detail::clean_utf8(message);
}

MILLRACE_INLINE std::size_t row::held_bytes() const noexcept {
  std::size_t sum = sizeof(row) + message.size() + values.capacity() * sizeof(quantity);
  for (const auto& q : values) sum += q.name.size();
  for (const auto& i : images) sum += sizeof i + i.name.size() + i.file.size();
  return sum;
}

}}   // namespace millrace
