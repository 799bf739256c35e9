// Definitions for record.hpp.
#pragma once

#include <millrace/item/record.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE bytes record::field(std::size_t index) const noexcept {
  const auto& f = entries()[index];
  return {detail::block_ref(block_of(head_.get())), {base() + f.data_at, f.data_size}, text(f.name_at, f.name_size)};
}

MILLRACE_INLINE error_location record::where() const {
  return {.stage = {}, .shard = std::string(shard()), .key = std::string(key()), .offset_bytes = offset_bytes()};
}

MILLRACE_INLINE std::size_t record::find(std::string_view names) const noexcept {
  while (head_) {
    const std::size_t end = names.find(';');
    const std::string_view name = names.substr(0, end);
    for (std::size_t i = 0; i < head_->field_count; ++i)
      if (text(entries()[i].name_at, entries()[i].name_size) == name) return i;
    if (end == std::string_view::npos) break;
    names.remove_prefix(end + 1);
  }
  return none;
}

MILLRACE_INLINE std::string record::longer_name(std::string_view names) const {
  for (;;) {
    const std::size_t end = names.find(';');
    const std::string_view alternative = names.substr(0, end);
    for (std::size_t i = 0; i < field_count(); ++i) {
      const std::string_view name = field(i).name();
      const bool longer = name.size() > alternative.size() && name.ends_with(alternative);
      if (longer && name[name.size() - alternative.size() - 1] == '.') return std::string(name);
    }
    if (end == std::string_view::npos) return {};
    names.remove_prefix(end + 1);
  }
}

MILLRACE_INLINE void record::throw_missing(std::string_view names) const {
    std::string present;
    for (std::size_t i = 0; i < field_count(); ++i) {
      present += present.empty() ? "'" : ", '";
      present += printable(field(i).name());
      present += '\'';
    }
    const std::string longer = longer_name(names);
    throw detail::missing_field_error(
        "the record has no field '" + printable(names) + "'; it has " + (present.empty() ? "none" : present),
        longer.empty() ? "Name a field that every sample has, list alternatives as \"jpg;png\", call has() first, or "
                         "choose samples by .having = \"" + printable(names) + "\""
                       : "A key ends at the first dot of the file name: name the field '" + printable(longer) +
                             "', or write file names with one dot",
        where());
  }

namespace detail {

MILLRACE_INLINE error_location location_of(const bytes& field) {
  const auto* block = field.block().get();
  if (!block || !block->head) return {};
  const auto* head = static_cast<const record_head*>(block->head);
  const auto* base = reinterpret_cast<const std::byte*>(block + 1);
  const auto begin = static_cast<std::size_t>(field.data() - base), end = begin + field.size();
  for (;;) {
    const record candidate(head);
    if (head->next_at == 0) return candidate.where();
    for (std::size_t i = 0; i < candidate.field_count(); ++i) {
      const bytes own = candidate.field(i);
      const auto at = static_cast<std::size_t>(own.data() - base);
      if (at <= begin && end <= at + own.size() && (!own.empty() || own.name().data() == field.name().data()))
        return candidate.where();
    }
    head = reinterpret_cast<const record_head*>(base + head->next_at);
  }
}

}  // namespace detail

}}  // namespace millrace
