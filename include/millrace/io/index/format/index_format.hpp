// Converts an index to the bytes of its file, and checks whether the bytes of a file are valid.
//
//   std::vector<std::byte> file = mr::detail::index_bytes(index);
//   std::string defect = mr::detail::find_defect(front, file.size());   // empty if the index_front is valid
//   defect = mr::detail::find_defect(front.head, columns);              // empty if all offsets are within the shard
//   defect = mr::detail::find_defect(front, columns, ends);   // empty if the ends of the entries are valid
//
// Format of version 1: a head of fixed size, followed by index_columns (shard_index.hpp) in their memory layout. A
// column of an index is an array with one number for each sample, member or field. The head and the columns each have a
// CRC-32C. Numbers have the byte order of the machine that wrote them.
// Format of version 2, for shards with entry points: the head, an index_entries_head, the columns, a table, and the
// entries. The entries of a member encode its entry points (shard_index.hpp). The table contains the end of each
// member's entries. A file is untrusted input. The numbers of samples and members are checked against the shard's size
// before memory is allocated. After that, every number that is used as an offset or as a position in an array is
// checked.
// Errors: throws nothing. Threads: pure functions; any thread.
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

/// The head of an index file, in its file layout.
struct index_head {
  static constexpr std::array<char, 8> expected_mark{'M', 'R', '-', 'I', 'N', 'D', 'E', 'X'};
  static constexpr std::uint32_t expected_order = 0x01020304;
  static constexpr std::uint32_t expected_version = 1, with_entries = 2;
  // An additional value of `state`, which occurs only in index files: the shard is complete, but has no end marker.
  static constexpr auto complete_without_marker = static_cast<shard_index::shard_state>(3);

  std::array<char, 8> mark = expected_mark;
  std::uint32_t byte_order = expected_order;
  std::uint32_t version = expected_version;
  std::uint64_t shard_bytes = 0;
  std::int64_t shard_modified_ns = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t damage_offset_bytes = 0, resume_offset_bytes = 0;
  std::uint64_t metadata_members = 0, dot_files = 0, names_without_dot = 0, not_regular = 0, unconverted_names = 0;
  index_counts counts{};
  shard_index::shard_state state{};
  std::uint32_t body_checksum = 0;
  std::uint32_t known_checksums = 0;
  std::uint32_t head_checksum = 0;   // CRC-32C of all preceding bytes of the head

  std::uint32_t expected_head_checksum() const noexcept;
  shard_identity identity() const noexcept { return {.size_bytes = shard_bytes, .modified_ns = shard_modified_ns}; }
  shard_index::shard_facts facts() const noexcept;
};
static_assert(std::is_trivially_copyable_v<index_head> && std::has_unique_object_representations_v<index_head> &&
              offsetof(index_head, counts) == index_samples_at);

/// The second head of a file with entry points.
struct index_entries_head {
  std::uint64_t bytes = 0;           // size of all entries and their checksums
  std::uint32_t ends_checksum = 0;   // CRC-32C of the table that stores the ends
  std::uint32_t checksum = 0;        // CRC-32C of index_head::head_checksum, `bytes` and `ends_checksum`

  std::uint32_t expected_checksum(const index_head& head) const noexcept;
};
static_assert(std::has_unique_object_representations_v<index_entries_head>);

/// The beginning of a file. A file without entry points has no index_entries_head.
struct index_front {
  index_head head{};
  index_entries_head entries{};

  bool has_entries() const noexcept { return head.version == index_head::with_entries; }
  std::uint64_t columns_at() const noexcept { return sizeof head + (has_entries() ? sizeof entries : 0); }
  /// Returns the size of the file without the entries themselves.
  std::uint64_t bytes_before_index_entries() const noexcept;
};
static_assert(std::has_unique_object_representations_v<index_front>);

/// Returns the bytes of the index file, without the entries of members.
std::vector<std::byte> index_bytes(const shard_index& index);

/// Returns the offset of the entries in an index file with entry points.
std::uint64_t entries_begin_at(const index_counts& counts) noexcept;

/// Returns the defect of the heads, or "" if they are valid. The caller must have verified the checksums of the heads.
/// `file_bytes` is the size of the file.
std::string find_defect(const index_front& front, std::uint64_t file_bytes);

/// Returns the defect of the columns, or "" if they are valid.
std::string find_defect(const index_head& head, const index_columns& columns);

/// Returns the defect of the table with the ends of the entries, or "" if it is valid. Requires valid columns.
std::string find_defect(const index_front& front, const index_columns& columns, std::span<const std::uint32_t> ends);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/index_format.inl>
#endif
