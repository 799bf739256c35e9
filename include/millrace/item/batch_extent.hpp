// What is known of a batch only once its last row is written: how far its ragged columns reach.
//
//   batch_extent e = layout.close(base, rows);     // pads, and moves what is padded together
//   backend.copy_to_device(to, base, e.used_bytes);
//
// Threads and lifetime: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

struct batch_extent {
  static constexpr std::size_t most_ragged = 8;   ///< ragged columns of a batch

  std::array<std::uint32_t, most_ragged> padded_to{};   ///< length of the rows of each, in the order of batch<...>
  std::size_t used_bytes = ~std::size_t{0};             ///< of its slot, from the front; all of it unless said
};

}}  // namespace millrace
