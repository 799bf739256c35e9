// A typed view of a ragged column of a batch: rows padded to one length, and how long each is. Light: for .cu files.
//
//   auto [words, lengths] = b.get<&example::words>();    // [B, longest of this batch] u32 and [B] i32
//   words(i, t);                                         // padding from t = lengths[i] on; words.span() has it too
//   for (auto word : b.get<&example::words>()[i]) ...    // row i without its padding
//
// Layout: as item/tensor_view.hpp says, both on the same device. Owns nothing: valid until its batch is released.
#pragma once

#include <millrace/item/tensor_view.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

template <class T, std::size_t N>
struct padded_view {
  tensor_view<T, N> values{};                ///< [rows, longest, ...]
  tensor_view<std::int32_t, 1> lengths{};    ///< [rows]: so many of a row's `longest` are no padding

  /// Row `i` without its padding. On the host only, in every build: elsewhere nobody can read its length.
  tensor_view<T, N - 1> operator[](std::size_t i) const {
    if (lengths.memory != memory_kind::host) throw bad_element_access::memory(lengths.name);
    tensor_view<T, N - 1> row = values[i];
    row.shape[0] = static_cast<std::size_t>(lengths[i]);
    return row;
  }
  /// There is none without padding; this says so.
  __attribute__((unavailable("millrace: a ragged column has padding: got words.span(), expected the span of a row. Use "
                             "words[i].span() for row i without it, words.values.span() for all rows with it.")))
  std::span<T> span() const;
};

}}  // namespace millrace
