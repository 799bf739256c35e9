// padded_view: a typed view of a ragged column of a batch, with rows padded to one length and their real lengths.
//
//   auto [words, lengths] = b.get<&example::words>();    // [B, longest of this batch] u32 and [B] i32
//   words(i, t);                                         // padding from t = lengths[i] on; words.span() includes it
//   for (auto word : b.get<&example::words>()[i]) ...    // row i without its padding
//
// A .cu file may include this header: it is cheap to compile.
// Layout: as in item/tensor_view.hpp; both views are on the same device. Lifetime: owns nothing and is valid until its
// batch is released.
#pragma once

#include <millrace/item/tensor_view.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// The padded rows of a ragged column, and the length of each row.
template <class T, std::size_t N>
struct padded_view {
  tensor_view<T, N> values{};                ///< [rows, longest, ...]
  tensor_view<std::int32_t, 1> lengths{};    ///< [rows]: length of each row without its padding

  /// Returns row `i` without its padding. Throws bad_element_access in every build if the column lies in GPU memory,
  /// where the host cannot read the length.
  tensor_view<T, N - 1> operator[](std::size_t i) const {
    if (lengths.memory != memory_kind::host) throw detail::bad_element_access::memory(lengths.name);
    tensor_view<T, N - 1> row = values[i];
    row.shape[0] = static_cast<std::size_t>(lengths[i]);
    return row;
  }
  /// Does not compile: the error names the spans with and without padding.
  __attribute__((unavailable("millrace: a ragged column has padding: got words.span(), expected the span of a row. Use "
                             "words[i].span() for row i without it, words.values.span() for all rows with it.")))
  std::span<T> span() const;
};

}}  // namespace millrace
