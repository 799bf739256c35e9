// ragged: a column whose rows vary in length, such as words, boxes or sound. Each batch pads its rows to one length.
//
//   struct example { mr::picture pixels; mr::ragged<std::uint32_t> words; std::int32_t label; };
//   example prepare(const mr::record& r) {
//     return {mr::jpeg(r["jpg"]).resize(224, 224), mr::ragged(tokenize(r["txt"].text()), {.max_length = 64}),
//             r["cls"].as<std::int32_t>()};
//   }
//
//   auto [words, lengths] = b.get<&example::words>();     // [B, longest of the batch] u32 and [B] i32
//
// Construct a row from a std::vector<T>, or from a tensor<T, N> whose first dimension varies: boxes [n, 4] become [B,
// longest, 4]. A slot has space for max_length in every row, but only the used part is copied to a device. With `fixed`
// all batches have one shape, as CUDA graphs require.
// All samples of a run must have the same options as the first sample.
// Errors: the constructor throws data_error for a length above max_length if `truncate` is not set, and setup_error for
// invalid options. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of a ragged column.
template <class T>
struct ragged_options {
  std::size_t max_length = 0;    ///< maximum length; required, because every row of a slot has space for it
  T padding{};                   ///< value of the padding elements
  bool truncate = false;         ///< if true, longer rows are truncated; if false, a longer row is a data_error
  bool fixed = false;            ///< if true, every batch is padded to max_length, not to its longest row
  std::size_t multiple_of = 1;   ///< pads the longest row to a multiple of this number, at most to max_length

  friend bool operator==(const ragged_options&, const ragged_options&) = default;

  /// Returns a text for messages, such as "max_length 64, padding 0".
  std::string describe() const {
    std::string text = "max_length " + std::to_string(max_length) + ", padding ";
    if constexpr (requires { std::to_string(padding); }) text += std::to_string(padding);
    else text += "of bits " + std::to_string(padding.bits);
    if (multiple_of > 1) text += ", multiple_of " + std::to_string(multiple_of);
    return text + (truncate ? ", truncate" : "") + (fixed ? ", fixed" : "");
  }
  /// Returns the padded length of the rows of a batch whose longest row is `longest`.
  std::size_t padded(std::size_t longest) const noexcept {
    if (fixed) return max_length;
    return std::min(max_length, (longest + multiple_of - 1) / multiple_of * multiple_of);
  }
};

namespace detail {

/// Returns the length of a row: `length`, or max_length if the row is truncated. Throws the errors of the constructor
/// of ragged.
template <class T>
std::size_t ragged_length(std::size_t length, const ragged_options<T>& o) {
  if (o.max_length == 0 || o.multiple_of == 0 ||
      o.max_length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw setup_error("the options of a ragged column are out of range: got max_length " +
                          std::to_string(o.max_length) + " and multiple_of " + std::to_string(o.multiple_of) +
                          ", expected max_length from 1 to 2147483647, and multiple_of at least 1",
                      "Set ragged_options::max_length to the maximum length of a row, and multiple_of to 1 or more");
  if (length > o.max_length && !o.truncate)
    throw data_error("a ragged row is too long: got length " + std::to_string(length) +
                         ", expected at most max_length " + std::to_string(o.max_length),
                     "Raise ragged_options::max_length, or set truncate to cut longer rows");
  return std::min(length, o.max_length);
}

}   // namespace detail

/// One row of a ragged column, without padding: shape `[length, ...]`.
template <class T, std::size_t N = 1>
class ragged {
 public:
  using element = T;
  static constexpr std::size_t rank = N;

  /// Creates an empty row without options. Do not put this row into a batch.
  ragged() = default;
  /// Creates a row from the elements. Throws data_error if the row is too long, and setup_error if the options are
  /// invalid.
  ragged(std::vector<T> elements, const ragged_options<T>& o)
    requires(N == 1)
      : options_(o), data_(std::move(elements)) {
    shape_[0] = data_.size();
    fit();
  }
  /// Creates a row from a tensor, whose first dimension varies. Throws the errors of the constructor above.
  // A template, so that ragged<T> compiles for an invalid T: the message of batch() is clearer.
  template <detail::tensor_element Same>
    requires std::same_as<Same, T>
  ragged(const tensor<Same, N>& elements, const ragged_options<T>& o)
      : options_(o), shape_(elements.shape()), data_(elements.span().begin(), elements.span().end()) {
    fit();
  }

  /// Returns the length of this row in the dimension that varies.
  std::size_t length() const noexcept { return shape_[0]; }
  /// Returns the elements, row-major, without padding.
  std::span<const T> elements() const noexcept { return {data_.data(), data_.size()}; }
  /// Returns the options.
  const ragged_options<T>& options() const noexcept { return options_; }
  /// Returns the shape of the longest possible row: `[max_length, ...]`.
  std::array<std::size_t, N> shape() const noexcept {
    auto longest = shape_;
    longest[0] = options_.max_length;
    return longest;
  }
  /// Returns the memory use of the row, in bytes.
  std::size_t held_bytes() const noexcept { return sizeof(ragged) + data_.size() * sizeof(T); }

 private:
  void fit() {
    const std::size_t longest = detail::ragged_length(length(), options_);
    if (longest == length()) return;
    data_.resize(data_.size() / length() * longest);
    shape_[0] = longest;
  }

  ragged_options<T> options_{};
  std::array<std::size_t, N> shape_{};
  std::vector<T> data_{};
};

template <class T>
ragged(std::vector<T>, ragged_options<T>) -> ragged<T, 1>;
template <class T, std::size_t N>
ragged(tensor<T, N>, ragged_options<T>) -> ragged<T, N>;

}}   // namespace millrace
