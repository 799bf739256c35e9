// packed: a row of tokens from pack() (stages/pack.hpp) or token_files() (sources/token_files.hpp).
//
//   auto flow = mr::lines("corpus.txt.gz") | mr::map(tokenize) | mr::pack({.length = 2'048, .segments = true})
//             | mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 32});     // [32, 2048] u32 each
//
// Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A row of tokens. The documents of a row are numbered from 1. For each token, `segments` contains the number of its
/// document, or 0 for padding. `positions` contains the offset of each token in the part of its document that is in
/// this row. `segments` and `positions` are empty unless the options of pack() or pack_best_fit() request them.
struct packed {
  std::vector<std::uint32_t> ids{};
  std::vector<std::uint32_t> segments{};
  std::vector<std::uint32_t> positions{};

  /// Returns the ids.
  operator std::span<const std::uint32_t>() const noexcept { return ids; }
  /// Returns the memory use of the row, in bytes.
  std::size_t held_bytes() const noexcept {
    return sizeof(packed) + (ids.size() + segments.size() + positions.size()) * sizeof(std::uint32_t);
  }
};

}}   // namespace millrace
