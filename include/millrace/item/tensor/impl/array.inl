// Definitions for array.hpp.
#pragma once

#include <millrace/item/tensor/array.hpp>

#include <millrace/base/file_kind.hpp>
#include <millrace/item/record.hpp>

#include <charconv>
#include <limits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::optional<npy_header> npy_header_parser::parse() {
  npy_header header;
  bool has_type = false, has_order = false, has_shape = false;
  if (!skip("{")) return std::nullopt;
  while (!skip("}")) {
    const auto key = string();
    if (!key || !skip(":")) return std::nullopt;
    bool* const has_key = *key == "descr"           ? &has_type
                          : *key == "fortran_order" ? &has_order
                          : *key == "shape"         ? &has_shape
                                                    : nullptr;
    if (!has_key || std::exchange(*has_key, true)) return std::nullopt;
    if (has_key == &has_type) {
      const auto type = string();
      if (!type) return std::nullopt;
      header.type = *type;
    } else if (has_key == &has_order) {
      header.fortran_order = skip("True");
      if (!header.fortran_order && !skip("False")) return std::nullopt;
    } else if (!shape(header.shape)) {
      return std::nullopt;
    }
    if (skip(",")) continue;
    if (!skip("}")) return std::nullopt;
    break;
  }
  skip_blanks();
  if (!text_.empty() || !has_type || !has_order || !has_shape) return std::nullopt;
  return header;
}

MILLRACE_INLINE bool npy_header_parser::skip(std::string_view token) noexcept {
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
  if (!skip("(")) return false;
  while (!skip(")")) {
    skip_blanks();
    std::size_t extent = 0;
    const auto [end, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
    if (failure != std::errc{}) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    extents.push_back(extent);
    if (skip(",")) continue;
    return skip(")");
  }
  return true;
}

MILLRACE_INLINE void throw_no_array(const bytes& field, const std::string& problem, std::string hint) {
  const std::string name = field.name().empty() ? "the bytes" : "the field '" + printable(field.name()) + "'";
  throw data_error(name + " " + problem, std::move(hint), location_of(field));
}

MILLRACE_INLINE void check_raw_array(const bytes& field) {
  constexpr std::size_t max_inspected_bytes = std::size_t{64} << 10;
  const std::span<const std::byte> all = field;
  const file_kind kind = kind_of_file(
      {.front = all.first(std::min(all.size(), max_inspected_bytes)), .file_bytes = all.size()});
  // An offset table (a number of offsets, then increasing offsets) is accepted, because raw integers may have the same
  // values.
  if (kind == file_kind::unknown || kind == file_kind::offset_table) return;
  throw_no_array(
      field,
      "does not contain raw numbers: got " + std::string(name_of(kind)) + ", expected a .npy file or raw numbers",
      is_textual(kind) ? "Read the field with as<T>() or text()"
                       : "Write the field with numpy.save(), or read its bytes through bytes::data()");
}

/// Returns the layout of a field without NumPy's magic bytes.
MILLRACE_INLINE array_layout raw_array_layout(const bytes& field, const npy_element& element) {
  if (field.name().ends_with("npy"))
    throw_no_array(field, "is not a .npy file: it does not begin with NumPy's magic bytes",
                   "Write the file with numpy.save()");
  if (element.size_bytes > 1) check_raw_array(field);
  if (field.size() % element.size_bytes != 0)
    throw_no_array(field,
                   "has " + std::to_string(field.size()) + " bytes, which is not a multiple of the " +
                       std::to_string(element.size_bytes) + " bytes of one " + std::string(element.name),
                   "Request the element type of the data");
  const std::size_t count = field.size() / element.size_bytes;
  return {.shape = {count}, .count = count, .payload = field};
}

/// Returns the header of a .npy file, and the offset of its elements.
MILLRACE_INLINE std::pair<npy_header, std::size_t> read_npy_header(const bytes& field) {
  const std::string_view all = field.text();
  const auto byte_at = [all](std::size_t at) -> std::size_t { return static_cast<unsigned char>(all[at]); };
  const std::size_t major = all.size() > 7 ? byte_at(6) : 0, minor = all.size() > 7 ? byte_at(7) : 0;
  const std::size_t header_at = major == 1 ? 10 : 12;
  if (all.size() < header_at) throw_no_array(field, "is a .npy file that is truncated", "Write the file again");
  if (major < 1 || major > 2 || minor != 0)
    throw_no_array(field,
                   "is a .npy file of an unsupported version: got " + std::to_string(major) + "." +
                       std::to_string(minor) + ", expected 1.0 or 2.0",
                   "Write the file with numpy.save() from a plain array");
  std::size_t header_bytes = byte_at(8) | byte_at(9) << 8;
  if (major == 2) header_bytes |= byte_at(10) << 16 | byte_at(11) << 24;
  if (header_bytes > all.size() - header_at)
    throw_no_array(field, "is a .npy file that is truncated in its header", "Write the file again");
  auto header = npy_header_parser(all.substr(header_at, header_bytes)).parse();
  if (!header)
    throw_no_array(field,
                   "is a .npy file with an unsupported header: got " +
                       printable(all.substr(header_at, std::min<std::size_t>(header_bytes, 80))),
                   "Save a plain array: structured types are not supported");
  return {*std::move(header), header_at + header_bytes};
}

/// Throws data_error if the array has elements of another type, or Fortran order.
MILLRACE_INLINE void check_elements(const bytes& field, const npy_header& header, const npy_element& element) {
  if (!element.is(header.type))
    throw_no_array(field,
                   "has the wrong element type: got '" + printable(header.type) + "', expected '" +
                       std::string(element.type) + "' (" + std::string(element.name) + ")",
                   header.type.starts_with('>') ? "Convert the big-endian elements by astype() before saving"
                   : header.type.find('O') < 2  ? "Save a plain array: Python objects are not supported"
                   : header.type == "|b1"       ? "Read bools as std::uint8_t, with values 0 and 1"
                   : header.type.find('V') < 2  ? "Request bf16 if the elements are two raw bytes"
                                                : "Request the element type of the file, or save it with astype()");
  if (header.fortran_order)
    throw_no_array(field, "has the wrong order: got Fortran order, expected C order",
                   "Use numpy.ascontiguousarray() before saving");
}

/// Returns the number of elements, whose size fits into 64 bits.
MILLRACE_INLINE std::size_t array_element_count(const bytes& field, const std::vector<std::size_t>& shape,
                                                std::size_t element_bytes) {
  // With an extent of zero the array is empty, even if the other extents are large.
  std::size_t count = std::find(shape.begin(), shape.end(), 0U) != shape.end() ? 0 : 1;
  for (const std::size_t extent : shape) {
    if (count > 0 && extent > std::numeric_limits<std::size_t>::max() / element_bytes / count)
      throw_no_array(field, "has a shape whose size does not fit into 64 bits", "Write the file again: it is damaged");
    count *= extent;
  }
  return count;
}

MILLRACE_INLINE array_layout layout_of(const bytes& field, const npy_element& element) {
  if (!field.text().starts_with("\x93NUMPY")) return raw_array_layout(field, element);
  auto [header, elements_at] = read_npy_header(field);
  check_elements(field, header, element);
  const std::size_t count = array_element_count(field, header.shape, element.size_bytes);
  const std::span<const std::byte> payload = std::span<const std::byte>(field).subspan(elements_at);
  if (count * element.size_bytes != payload.size())
    throw_no_array(field,
                   "has the wrong size: got " + std::to_string(payload.size()) + " bytes of elements, expected " +
                       std::to_string(count * element.size_bytes) + " according to its shape",
                   "Write the file again: it is damaged");
  return {.shape = std::move(header.shape), .count = count, .payload = payload};
}

}   // namespace detail

}}   // namespace millrace
