// Defines what array.hpp declares.
#pragma once

#include <millrace/item/tensor/array.hpp>

#include <millrace/base/file_kind.hpp>
#include <millrace/item/record.hpp>

#include <charconv>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::optional<npy_header> npy_header_parser::parse() {
  npy_header header;
  bool has_type = false, has_order = false, has_shape = false;
  if (!take("{")) return std::nullopt;
  while (!take("}")) {
    const auto key = string();
    if (!key || !take(":")) return std::nullopt;
    bool* const seen = *key == "descr"           ? &has_type
                       : *key == "fortran_order" ? &has_order
                       : *key == "shape"         ? &has_shape
                                                 : nullptr;
    if (!seen || std::exchange(*seen, true)) return std::nullopt;
    if (seen == &has_type) {
      const auto type = string();
      if (!type) return std::nullopt;
      header.type = *type;
    } else if (seen == &has_order) {
      header.fortran_order = take("True");
      if (!header.fortran_order && !take("False")) return std::nullopt;
    } else if (!shape(header.shape)) {
      return std::nullopt;
    }
    if (take(",")) continue;
    if (!take("}")) return std::nullopt;
    break;
  }
  skip_blanks();
  if (!text_.empty() || !has_type || !has_order || !has_shape) return std::nullopt;
  return header;
}

MILLRACE_INLINE bool npy_header_parser::take(std::string_view token) noexcept {
  skip_blanks();
  if (!text_.starts_with(token)) return false;
  text_.remove_prefix(token.size());
  return true;
}

MILLRACE_INLINE std::optional<std::string_view> npy_header_parser::string() noexcept {
  skip_blanks();
  if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
  const std::size_t end = text_.find(text_.front(), 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text_.substr(1, end - 1);
  text_.remove_prefix(end + 1);
  return inside;
}

MILLRACE_INLINE bool npy_header_parser::shape(std::vector<std::size_t>& extents) {
  if (!take("(")) return false;
  while (!take(")")) {
    skip_blanks();
    std::size_t extent = 0;
    const auto [end, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
    if (failure != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    extents.push_back(extent);
    if (take(",")) continue;
    return take(")");
  }
  return true;
}

MILLRACE_INLINE void throw_no_array(const bytes& field, const std::string& problem, std::string hint) {
  const std::string name = field.name().empty() ? "the bytes" : "the field '" + printable(field.name()) + "'";
  throw data_error(name + " " + problem, std::move(hint), location_of(field));
}

MILLRACE_INLINE void check_raw(const bytes& field) {
  constexpr std::size_t max_inspected_bytes = std::size_t{64} << 10;
  const std::span<const std::byte> all = field;
  const file_kind kind =
      kind_of_file({.front = all.first(std::min(all.size(), max_inspected_bytes)), .file_bytes = all.size()});
  // A count and increasing offsets may also be raw integers.
  if (kind == file_kind::unknown || kind == file_kind::offset_table) return;
  throw_no_array(field,
                 "holds no raw numbers: got " + std::string(name_of(kind)) + ", expected a .npy file or raw numbers",
                 is_textual(kind) ? "Read it with integer(), real() or text()"
                                  : "Save the array with numpy.save(), or copy numbers from bytes::data() yourself");
}

}  // namespace detail

}}  // namespace millrace
