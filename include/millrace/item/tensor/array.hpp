// Reads arrays from the bytes of a field: NumPy's .npy files and raw numbers.
//
//   auto embedding = mr::array<float>(r["npy"]);             // .shape {768}, .data: std::vector<float>
//   auto box       = mr::array<float, 2>(r["box.npy"]);      // tensor<float, 2>: another number of dimensions throws
//   auto samples   = mr::array<std::int16_t>(r["pcm"]);      // no .npy: raw elements, little-endian, shape {n}
//
// A field is a .npy file if it begins with NumPy's magic bytes or if its name ends in "npy". Any other field is raw.
// Elements of more than one byte are never those of a compressed file, an archive, a text or another well-known kind.
// Accepted are versions 1.0 and 2.0, little-endian, C order, and exactly the element type T. Nothing is converted.
// Arrays of bool are read as std::uint8_t, and those that ml_dtypes writes as bfloat16 ('<V2') as bf16.
// Errors: data_error with field, shard and key. Sizes are checked before memory is allocated. Threads: no shared state.
// Format: numpy.lib.format, "NPY format" 1.0 and 2.0.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// An array whose number of dimensions is known only at run time; row-major.
template <tensor_element T>
struct shaped_array {
  std::vector<std::size_t> shape{};
  std::vector<T> data{};
};

static_assert(std::endian::native == std::endian::little, "fields hold little-endian numbers");

template <class T>
concept array_element = tensor_element<T> && !std::same_as<T, bool>;

/// Returns NumPy's name of T: "<f4", "|u1", ... NumPy has no bf16: the package ml_dtypes writes those as two raw bytes.
template <array_element T>
std::string npy_type() {
  if (std::same_as<T, bf16>) return "<V2";
  std::string type(1, sizeof(T) == 1 ? '|' : '<');
  type += dtype_name<T>().front();
  return type += std::to_string(sizeof(T));
}

/// Returns whether elements of NumPy's type are read as T. A bool is a byte of 0 or 1.
template <array_element T>
bool is_npy_type(std::string_view type) {
  return type == npy_type<T>() || (std::same_as<T, std::uint8_t> && type == "|b1") ||
         (std::same_as<T, bf16> && type == "|V2");
}

struct npy_header {
  std::string type{};
  bool fortran_order = false;
  std::vector<std::size_t> shape{};
};

/// Reads the header: a Python dictionary with the keys descr, fortran_order and shape.
class npy_header_parser {
 public:
  explicit npy_header_parser(std::string_view text) : text_(text) {}

  /// Returns nothing if the text is no such dictionary.
  std::optional<npy_header> parse();

 private:
  void skip_blanks() noexcept { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n\r"), text_.size())); }

  bool take(std::string_view token) noexcept;
  std::optional<std::string_view> string() noexcept;
  bool shape(std::vector<std::size_t>& extents);

  std::string_view text_;
};

struct array_layout {
  std::vector<std::size_t> shape{};
  std::size_t count = 0;
  std::span<const std::byte> payload{};
};

[[noreturn]] void throw_no_array(const bytes& field, const std::string& problem, std::string hint);

/// Throws data_error if the bytes are those of a well-known kind of file, not raw numbers.
void check_raw(const bytes& field);

/// Checks the whole field and returns its layout. Allocates the shape only.
template <array_element T>
array_layout layout_of(const bytes& field) {
  constexpr std::string_view mark = "\x93NUMPY";
  const std::string_view all = field.text();
  if (!all.starts_with(mark)) {
    if (field.name().ends_with("npy"))
      throw_no_array(field, "is not a .npy file: it does not begin with NumPy's mark", "Write it with numpy.save()");
    if constexpr (sizeof(T) > 1) check_raw(field);
    if (all.size() % sizeof(T) != 0)
      throw_no_array(field,
                     "has " + std::to_string(all.size()) + " bytes, which is not a multiple of the " +
                         std::to_string(sizeof(T)) + " bytes of one " + std::string(dtype_name<T>()),
                     "Ask for the element type that was written");
    return {.shape = {all.size() / sizeof(T)}, .count = all.size() / sizeof(T), .payload = field};
  }
  const auto byte_at = [all](std::size_t at) -> std::size_t { return static_cast<unsigned char>(all[at]); };
  const std::size_t major = all.size() > 7 ? byte_at(6) : 0, minor = all.size() > 7 ? byte_at(7) : 0;
  const std::size_t header_at = major == 1 ? 10 : 12;
  if (all.size() < header_at) throw_no_array(field, "is a .npy file that is cut short", "Write it again");
  if (major < 1 || major > 2 || minor != 0)
    throw_no_array(
        field,
        "is a .npy file of version " + std::to_string(major) + "." + std::to_string(minor) + " (expected: 1.0 or 2.0)",
        "Write it with numpy.save() from a plain array");
  std::size_t header_bytes = byte_at(8) | byte_at(9) << 8;
  if (major == 2) header_bytes |= byte_at(10) << 16 | byte_at(11) << 24;
  if (header_bytes > all.size() - header_at)
    throw_no_array(field, "is a .npy file that is cut short in its header", "Write it again");
  auto header = npy_header_parser(all.substr(header_at, header_bytes)).parse();
  if (!header)
    throw_no_array(field,
                   "is a .npy file with a header of another kind: " +
                       printable(all.substr(header_at, std::min<std::size_t>(header_bytes, 80))),
                   "Only plain arrays are read: no structured types");
  if (!is_npy_type<T>(header->type))
    throw_no_array(field,
                   "holds elements of type '" + printable(header->type) + "' (expected: '" + npy_type<T>() +
                       "', which is " + std::string(dtype_name<T>()) + ")",
                   header->type.starts_with('>') ? "Big-endian data are not read: use astype() before saving"
                   : header->type.find('O') < 2  ? "Python objects are never read: save a plain array"
                   : header->type == "|b1"       ? "Read bools as std::uint8_t, which is 0 or 1"
                   : header->type.find('V') < 2  ? "Elements of two raw bytes are read as bf16"
                                                 : "Ask for the type that was written, or save astype()");
  if (header->fortran_order)
    throw_no_array(field, "holds an array in Fortran order (expected: C order)",
                   "Use numpy.ascontiguousarray() before saving");
  // An extent of zero makes the array empty, however large the other extents are.
  const bool empty = std::find(header->shape.begin(), header->shape.end(), 0U) != header->shape.end();
  const std::size_t there = all.size() - header_at - header_bytes;
  std::size_t count = empty ? 0 : 1;
  for (const std::size_t extent : header->shape) {
    if (count > 0 && extent > std::numeric_limits<std::size_t>::max() / sizeof(T) / count)
      throw_no_array(field, "has a shape whose size does not fit into 64 bits", "The file is damaged: write it again");
    count *= extent;
  }
  if (count * sizeof(T) != there)
    throw_no_array(field,
                   "has " + std::to_string(there) +
                       " bytes of elements (expected by its shape: " + std::to_string(count * sizeof(T)) + ")",
                   "The file is damaged: write it again");
  return {.shape = std::move(header->shape),
          .count = count,
          .payload = std::span<const std::byte>(field).subspan(header_at + header_bytes)};
}

template <array_element T>
std::vector<T> elements_of(const array_layout& layout) {
  if constexpr (std::same_as<T, std::uint8_t>) {   // bytes can be read in place, so no zeros are written first
    const auto* const first = reinterpret_cast<const std::uint8_t*>(layout.payload.data());
    return {first, first + layout.count};
  } else {
    std::vector<T> elements(layout.count);
    if (layout.count > 0) std::memcpy(elements.data(), layout.payload.data(), layout.payload.size());
    return elements;
  }
}

}  // namespace detail

/// Returns a copy of the array in `field`, with any number of dimensions.
/// Throws data_error if it is damaged or its elements are not of type T.
template <detail::array_element T>
detail::shaped_array<T> array(const bytes& field) {
  auto layout = detail::layout_of<T>(field);
  auto elements = detail::elements_of<T>(layout);
  return {.shape = std::move(layout.shape), .data = std::move(elements)};
}

/// Returns a copy of the array in `field`, which must have N dimensions.
/// Throws data_error as above, and for another number of dimensions.
template <detail::array_element T, std::size_t N>
tensor<T, N> array(const bytes& field) {
  const auto layout = detail::layout_of<T>(field);
  if (layout.shape.size() != N)
    detail::throw_no_array(field,
                           "holds an array of " + std::to_string(layout.shape.size()) +
                               " dimensions (expected: " + std::to_string(N) + ")",
                           "Ask for the number of dimensions that was written");
  std::array<std::size_t, N> shape{};
  std::copy(layout.shape.begin(), layout.shape.end(), shape.begin());
  return {shape, detail::elements_of<T>(layout)};
}

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/array.inl>
#endif
