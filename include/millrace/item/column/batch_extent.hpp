// batch_extent: the size of the used part of a slot (the memory of a batch), and its padding. Both are known only after
// the last row is written.
//
//   mr::detail::batch_extent e = layout.close(base, rows);     // pads ragged rows and removes gaps
//   backend.copy_to_device(to, base, e.used_bytes);
//
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The used bytes of a slot, the padded lengths of its ragged columns, and its rows without a sample.
struct batch_extent {
  static constexpr std::size_t max_ragged = 8;   ///< maximum number of ragged columns in a batch

  /// The padded row length of each ragged column, in the order of batch<...>. If height and width of the rows vary, the
  /// number is height * 65536 + width. For a column of lists, the number is the number of items of all rows.
  std::array<std::uint32_t, max_ragged> padded_to{};
  std::size_t used_bytes = ~std::size_t{0};   ///< bytes from the front of the slot; all bytes by default
  std::size_t padding_rows = 0;               ///< masked rows after the rows of samples
};

}}}   // namespace millrace::detail
