// A typed view of a ragged column of a batch: rows padded to one length, and how long each is. Light: for .cu files.
//
//   auto [words, lengths] = b.get<&example::words>();    // [B, longest of this batch] u32 and [B] i32
//   words.host()[i * words.shape[1] + t];                // padding from t = lengths.host()[i] on
//
// Layout: as item/tensor_view.hpp says, both on the same device. Owns nothing: valid until its batch is released.
#pragma once

#include <millrace/item/tensor_view.hpp>

namespace millrace::inline MILLRACE_ABI {

template <class T, std::size_t N>
struct padded_view {
  tensor_view<T, N> values{};                ///< [rows, longest, ...]
  tensor_view<std::int32_t, 1> lengths{};    ///< [rows]: so many of a row's `longest` are no padding
};

}  // namespace millrace::inline MILLRACE_ABI
