// Converts an index to the bytes of its file, and checks whether such bytes can be trusted.
//
//   std::vector<std::byte> file = mr::detail::index_bytes(index);
//   std::string wrong = mr::detail::unsound(front, file.size());   // empty if nothing is wrong with the index_front
//   wrong = mr::detail::unsound(front.head, columns);              // empty: every offset lies within the shard
//   wrong = mr::detail::unsound(front, columns, ends);             // empty: the entry points fit their payloads
//
// Format of version 1: a head of fixed size, then the columns of shard_index.hpp as they lie in memory. Both have a
// CRC-32C. Numbers have the byte order of the machine that wrote them, and the head states it. A machine with another
// order makes its own index.
// Version 2 has entry points. An entries_head lies behind the head. Behind the columns lies, for each member, where its
// entries end. The entries follow (entry_table.hpp). An index without that part is written as version 1, so that older
// readers can use it.
// A file is untrusted input. The counts are checked against the shard's size before memory is taken. Then every number
// that serves as an index or an offset is checked.
// Errors: none thrown. Threads: any; the functions are pure.
#pragma once

#include <millrace/io/index/format/shard_index.hpp>
#include <millrace/io/tar/read/declared_samples.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The head of an index file, as it lies in the file.
struct index_head {
  static constexpr std::array<char, 8> right_mark{'M', 'R', '-', 'I', 'N', 'D', 'E', 'X'};
  static constexpr std::uint32_t right_order = 0x01020304;
  static constexpr std::uint32_t right_version = 1, with_entries = 2;
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

/// Follows the head of a file with entry points.
struct entries_head {
  std::uint64_t bytes = 0;           // of all entries and their checksums
  std::uint32_t ends_checksum = 0;   // CRC-32C of the table of ends
  std::uint32_t checksum = 0;        // CRC-32C of the index_head's checksum and of all bytes before it

  std::uint32_t right_checksum(const index_head& head) const noexcept;
};
static_assert(std::has_unique_object_representations_v<entries_head>);

/// The beginning of a file. Without entry points, the columns lie in the place of the entries_head.
struct index_front {
  index_head head{};
  entries_head entries{};

  bool has_entries() const noexcept { return head.version == index_head::with_entries; }
  std::uint64_t columns_at() const noexcept { return sizeof head + (has_entries() ? sizeof entries : 0); }
  /// Returns the size of the file without the entries themselves.
  std::uint64_t bytes_before_entries() const noexcept;
};
static_assert(std::has_unique_object_representations_v<index_front>);

/// Returns the bytes of the whole file, or of one with entry points all but these. Checksums that other threads learn
/// during the call may be missing.
std::vector<std::byte> index_bytes(const shard_index& index);

/// Returns where the entries begin in the file of an index that has some.
std::uint64_t entries_begin_at(const index_counts& counts) noexcept;

/// Returns what is wrong with heads whose checksums are right, given the size of their file; empty if nothing is.
std::string unsound(const index_front& front, std::uint64_t file_bytes);

/// Returns what is wrong with the columns; empty if nothing is.
std::string unsound(const index_head& head, const index_columns& columns);

/// Returns what is wrong with the table of entries of sound columns; empty if nothing is.
std::string unsound(const index_front& front, const index_columns& columns, std::span<const std::uint32_t> ends);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/index_format.inl>
#endif
