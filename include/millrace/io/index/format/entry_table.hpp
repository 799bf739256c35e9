// The locations, in the index file of a shard, of the entry points of the shard's payloads.
//
//   const mr::detail::entry_table& entries = index.entries();
//   mr::byte_range where = entries.range_of(member);      // range in the index file, or 0 bytes
//
// An entry point is a position in a payload at which its decoder may start. The entry points of a payload are stored as
// a sequence of bytes, called its entries. Only the function that builds the entries and the decoder know the format of
// these bytes. In the file, a CRC-32C over payload and entries precedes the entries. Entries are never longer than
// their payload, and all entries of a shard together have less than 4 GiB.
// Memory: 4 bytes for each member (file of the archive) of a shard with entries. The entries stay in the file.
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/io/file/byte_source.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The ranges of all entries of a shard.
struct entry_table {
  static constexpr std::size_t checksum_bytes = 4;   // size of the checksum before the entries of each payload
  static constexpr std::uint64_t largest_bytes = std::numeric_limits<std::uint32_t>::max();

  bool built = false;                   ///< true if every payload was searched for entry points
  bool in_storage = false;             ///< the index file is stored next to the shard in its storage
  std::uint64_t begin_at = 0;          ///< offset of the first entries in the file
  std::vector<std::uint32_t> ends{};   ///< if `built`: the end of each member's entries, relative to begin_at

  /// Returns the size of all entries with their checksums.
  std::uint64_t bytes() const noexcept { return ends.empty() ? 0 : ends.back(); }
  /// Returns the number of payloads with entries.
  std::uint64_t fields() const noexcept {
    std::uint64_t count = 0;
    std::uint32_t before = 0;
    for (const std::uint32_t end : ends) count += end != std::exchange(before, end);
    return count;
  }
  /// Returns the range of the checksum and the entries of a member. The range has 0 bytes if the member has no entries.
  byte_range range_of(std::uint32_t member) const noexcept {
    if (ends.empty()) return {0, 0};
    const std::uint32_t begin = member == 0 ? 0 : ends[member - 1];
    return {begin_at + begin, ends[member] - begin};
  }
};

}}}  // namespace millrace::detail
