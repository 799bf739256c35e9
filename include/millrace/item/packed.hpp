// A row of tokens, as pack() makes them (stages/pack.hpp) and token_files() reads them (sources/token_files.hpp).
//
//   flow | mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 32})      // [32, length] u32 each
//
// Threads and lifetime: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// `segments` and `positions` are empty unless they were asked for, else as long as `ids`.
struct packed {
  std::vector<std::uint32_t> ids{};
  std::vector<std::uint32_t> segments{};
  std::vector<std::uint32_t> positions{};

  operator std::span<const std::uint32_t>() const noexcept { return ids; }
  std::size_t held_bytes() const noexcept {
    return sizeof(packed) + (ids.size() + segments.size() + positions.size()) * sizeof(std::uint32_t);
  }
};

}}  // namespace millrace
