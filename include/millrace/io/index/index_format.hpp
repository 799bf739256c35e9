// Converts an index to the bytes of its file, and checks whether such bytes can be trusted.
//
//   std::vector<std::byte> file = mr::detail::index_bytes(index);
//   std::string wrong = mr::detail::unsound(head, file.size());   // empty if nothing is wrong with the index_head
//   wrong = mr::detail::unsound(head, columns);                   // empty: every offset lies within the shard
//
// Format: a head of fixed size, then the columns of shard_index.hpp as they lie in memory. Both have a CRC-32C. Numbers
// have the byte order of the machine that wrote them, and the head states it. A machine with another order makes its
// own index.
// A file is untrusted input. The counts are checked against the shard's size before memory is taken. Then every number
// that serves as an index or an offset is checked.
// Errors: none thrown. Threads: any; the functions are pure.
#pragma once

#include <millrace/io/index/shard_index.hpp>
#include <millrace/io/tar/counted_beside.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The head of an index file, as it lies in the file.
struct index_head {
  static constexpr std::array<char, 8> right_mark{'M', 'R', '-', 'I', 'N', 'D', 'E', 'X'};
  static constexpr std::uint32_t right_order = 0x01020304;
  static constexpr std::uint32_t right_version = 1;
  static constexpr auto whole_without_marker = static_cast<shard_index::shard_state>(3);   // a value of `state`

  std::array<char, 8> mark = right_mark;
  std::uint32_t byte_order = right_order;
  std::uint32_t version = right_version;
  std::uint64_t shard_bytes = 0;
  std::int64_t shard_modified_ns = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t damage_offset_bytes = 0, resume_offset_bytes = 0;
  std::uint64_t metadata_members = 0, dot_files = 0, names_without_dot = 0, not_regular = 0, unconverted_names = 0;
  index_counts counts{};
  shard_index::shard_state state{};
  std::uint32_t body_checksum = 0;
  std::uint32_t known_checksums = 0;
  std::uint32_t head_checksum = 0;   // CRC-32C of all bytes before it

  std::uint32_t right_head_checksum() const noexcept;
  shard_identity identity() const noexcept { return {.size_bytes = shard_bytes, .modified_ns = shard_modified_ns}; }
  shard_index::shard_facts facts() const noexcept;
};
static_assert(std::is_trivially_copyable_v<index_head> && std::has_unique_object_representations_v<index_head> &&
              offsetof(index_head, counts) == index_samples_at);

/// Returns the bytes of the whole file. Checksums that other threads learn during the call may be missing.
std::vector<std::byte> index_bytes(const shard_index& index);

/// Returns what is wrong with a head whose checksum is right, given the size of its file; empty if nothing is.
std::string unsound(const index_head& head, std::uint64_t file_bytes);

/// Returns what is wrong with the columns; empty if nothing is.
std::string unsound(const index_head& head, const index_columns& columns);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/index_format.ipp>
#endif
