// Reads arrays from the bytes of a field: NumPy's .npy files and raw numbers.
//
//   auto embedding = mr::array<float>(r["npy"]);             // .shape {768}, .data: std::vector<float>
//   auto box       = mr::array<float, 2>(r["box.npy"]);      // tensor<float, 2>: other numbers of dimensions throw
//   auto samples   = mr::array<std::int16_t>(r["pcm"]);      // without .npy: raw elements, little-endian, shape {n}
//
// A field is a .npy file if it begins with NumPy's magic bytes or if its name ends in "npy". Any other field contains
// raw elements. If T is larger than one byte, a raw field that looks like a known kind of file, such as a compressed
// file, is an error. A .npy file must have version 1.0 or 2.0, little-endian elements, C order, and exactly the element
// type T. Nothing is converted. Arrays of bool are read as std::uint8_t, and bfloat16 arrays of ml_dtypes ('<V2') as
// bf16.
// Errors: data_error with field, shard and key. Sizes are checked before memory is allocated. Threads: the functions
// are pure; any thread may call them.
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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// An array whose number of dimensions is known only at run time; row-major.
template <detail::tensor_element T>
struct shaped_array {
  std::vector<std::size_t> shape{};
  std::vector<T> data{};
};

namespace detail {

static_assert(std::endian::native == std::endian::little, "fields contain little-endian numbers");

template <class T>
concept array_element = tensor_element<T> && !std::same_as<T, bool>;

/// NumPy's name of T: "<f4", "|u1", ... NumPy has no bf16: the package ml_dtypes writes it as two raw bytes.
template <array_element T>
inline constexpr std::array<char, 3> npy_type_text{sizeof(T) == 1 ? '|' : '<',
                                                   std::same_as<T, bf16> ? 'V' : dtype_name<T>().front(),
                                                   static_cast<char>('0' + sizeof(T))};

template <array_element T>
constexpr std::string_view npy_type() noexcept {
  return {npy_type_text<T>.data(), npy_type_text<T>.size()};
}

/// The element type that an array must have.
struct npy_element {
  std::size_t size_bytes = 0;
  std::string_view name{};      // "f32"
  std::string_view type{};      // NumPy's name: "<f4"
  std::string_view synonym{};   // a second NumPy name that is accepted; may be empty

  /// Returns whether elements of NumPy's type `npy` can be read as this type.
  bool is(std::string_view npy) const noexcept { return npy == type || (!synonym.empty() && npy == synonym); }
};

/// Returns the description of T. For std::uint8_t, arrays of bool are accepted too. Their elements are read as 0 or 1.
template <array_element T>
constexpr npy_element array_element_of_npy() noexcept {
  return {.size_bytes = sizeof(T),
          .name = dtype_name<T>(),
          .type = npy_type<T>(),
          .synonym = std::same_as<T, std::uint8_t> ? "|b1"
                     : std::same_as<T, bf16>       ? "|V2"
                                                   : ""};
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

  /// Returns the content of the header. Returns std::nullopt if the text is not a dictionary with these keys.
  std::optional<npy_header> parse();

 private:
  void skip_blanks() noexcept { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n\r"), text_.size())); }

  bool skip(std::string_view token) noexcept;
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

/// Throws data_error if the bytes look like a well-known kind of file, not like raw numbers.
void check_raw_array(const bytes& field);

/// Checks the complete field and returns its layout. Allocates memory only for the shape.
array_layout layout_of(const bytes& field, const npy_element& element);

template <array_element T>
array_layout layout_of(const bytes& field) {
  return layout_of(field, array_element_of_npy<T>());
}

template <array_element T>
std::vector<T> elements_of(const array_layout& layout) {
  if constexpr (std::same_as<T, std::uint8_t>) {   // constructed from the bytes, without writing zeros first
    const auto* const first = reinterpret_cast<const std::uint8_t*>(layout.payload.data());
    return {first, first + layout.count};
  } else {
    std::vector<T> elements(layout.count);
    if (layout.count > 0) std::memcpy(elements.data(), layout.payload.data(), layout.payload.size());
    return elements;
  }
}

}   // namespace detail

/// Returns a copy of the array in `field`, with any number of dimensions.
/// Throws data_error if it is damaged or its elements are not of type T.
template <detail::array_element T>
shaped_array<T> array(const bytes& field) {
  auto layout = detail::layout_of<T>(field);
  auto elements = detail::elements_of<T>(layout);
  return {.shape = std::move(layout.shape), .data = std::move(elements)};
}

/// Returns a copy of the array in `field`, which must have N dimensions.
/// Throws data_error if it is damaged, its elements are not of type T, or it does not have N dimensions.
template <detail::array_element T, std::size_t N>
tensor<T, N> array(const bytes& field) {
  const auto layout = detail::layout_of<T>(field);
  if (layout.shape.size() != N)
    detail::throw_no_array(field,
                           "has the wrong number of dimensions: got " + std::to_string(layout.shape.size()) +
                               ", expected " + std::to_string(N),
                           "Request the number of dimensions in the file");
  std::array<std::size_t, N> shape{};
  std::copy(layout.shape.begin(), layout.shape.end(), shape.begin());
  return {shape, detail::elements_of<T>(layout)};
}

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/tensor/impl/array.inl>
#endif
