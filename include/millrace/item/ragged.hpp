// A column whose rows are of varying length: words, boxes, sound. Each batch of it is padded to a rectangle.
//
//   struct example { mr::picture pixels; mr::ragged<std::uint32_t> words; std::int32_t label; };
//   example prepare(const mr::record& r) {
//     return {mr::jpeg(r["jpg"]).resize(224, 224), mr::ragged(tokenize(r["txt"].text()), {.max_length = 64}), ...};
//   }
//   auto [words, lengths] = b.get<&example::words>();     // [B, longest of the batch] u32 and [B] i32
//
// Of a std::vector<T>, or of a tensor<T, N> whose first dimension varies: boxes [n, 4] become [B, longest, 4]. A slot
// has room for max_length in every row; only what a batch uses of it is copied to a device. With `fixed` all batches
// are of one shape, as CUDA graphs need it. All samples of a run have the same options: those of the first.
// Errors: data_error, where it is made, for more than max_length (unless `truncate`); setup_error for options that make
// no sense. Threads and lifetime: a value.
#pragma once

#include <millrace/item/tensor.hpp>

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

template <class T>
struct ragged_options {
  std::size_t max_length = 0;     ///< has to be said: slots have room for it
  T padding{};                    ///< what stands behind the end of a row
  bool truncate = false;          ///< what is longer loses its end, and is no error
  bool fixed = false;             ///< every batch is padded to max_length, none to its longest row
  std::size_t multiple_of = 1;    ///< the longest row is rounded up to a multiple of that, at most to max_length

  friend bool operator==(const ragged_options&, const ragged_options&) = default;

  /// "max_length 64, padding 0", for messages.
  std::string describe() const {
    std::string text = "max_length " + std::to_string(max_length) + ", padding ";
    if constexpr (requires { std::to_string(padding); }) text += std::to_string(padding);
    else text += "of bits " + std::to_string(padding.bits);
    if (multiple_of > 1) text += ", multiple_of " + std::to_string(multiple_of);
    return text + (truncate ? ", truncate" : "") + (fixed ? ", fixed" : "");
  }
  /// Length of the rows of a batch whose longest is that.
  std::size_t padded(std::size_t longest) const noexcept {
    if (fixed) return max_length;
    return std::min(max_length, (longest + multiple_of - 1) / multiple_of * multiple_of);
  }
};

template <class T, std::size_t N = 1>
class ragged {
 public:
  using element = T;
  static constexpr std::size_t rank = N;

  ragged() = default;
  ragged(std::vector<T> elements, const ragged_options<T>& o)
    requires(N == 1)
      : options_(o), data_(std::move(elements)) {
    shape_[0] = data_.size();
    fit();
  }
  template <tensor_element Same>   // a template, so that batch may say what is wrong with a T that no tensor has
    requires std::same_as<Same, T>
  ragged(const tensor<Same, N>& elements, const ragged_options<T>& o)
      : options_(o), shape_(elements.shape()), data_(elements.span().begin(), elements.span().end()) {
    fit();
  }

  /// Of this row, in the dimension that varies.
  std::size_t length() const noexcept { return shape_[0]; }
  std::span<const T> elements() const noexcept { return {data_.data(), data_.size()}; }
  const ragged_options<T>& options() const noexcept { return options_; }
  /// Of the longest row that there may be.
  std::array<std::size_t, N> shape() const noexcept {
    auto most = shape_;
    most[0] = options_.max_length;
    return most;
  }
  std::size_t held_bytes() const noexcept { return sizeof(ragged) + data_.size() * sizeof(T); }

 private:
  void fit() {
    const ragged_options<T>& o = options_;
    if (o.max_length == 0 || o.multiple_of == 0 ||
        o.max_length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw setup_error("a ragged column has max_length " + std::to_string(o.max_length) + " and multiple_of " +
                            std::to_string(o.multiple_of) + " (expected: 1 to 2147483647, and at least 1)",
                        "Set ragged_options::max_length to the length that no row exceeds");
    if (length() <= o.max_length) return;
    if (!o.truncate)
      throw data_error("a ragged row has length " + std::to_string(length()) + ", more than its max_length of " +
                           std::to_string(o.max_length),
                       "Raise ragged_options::max_length, or set truncate to cut off what is longer");
    data_.resize(data_.size() / length() * o.max_length);
    shape_[0] = o.max_length;
  }

  ragged_options<T> options_{};
  std::array<std::size_t, N> shape_{};
  std::vector<T> data_{};
};

template <class T>
ragged(std::vector<T>, ragged_options<T>) -> ragged<T, 1>;
template <class T, std::size_t N>
ragged(tensor<T, N>, ragged_options<T>) -> ragged<T, N>;

}}  // namespace millrace
