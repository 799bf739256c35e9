// shard_index: the samples, keys and fields of one shard, their locations, and the checksums of their payloads.
//
//   // scan_shard(): tar_index_scan.hpp; index files: index_file.hpp
//   mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
//   auto sample = index.sample(4711);                           // .key, .offset_bytes, .first_member, .end_member
//   auto member = index.member(sample.first_member);            // .field, .offset_bytes, .size_bytes
//   index.checksum(sample.first_member);                        // CRC-32C of the payload, or 0 if it is unknown
//
// A member is a file in the archive, and consecutive members with one key are a sample. The index describes the same
// samples as shard_reader, in the same order, with all fields. If the shard is damaged, the index has the samples
// before the damage. If the shard is compressed, the index has no samples.
// Memory: 12 bytes and the key for each sample, and 16 bytes for each member, in one block.
// A checksum of 0 means that the checksum is unknown. Payloads whose real checksum is 0, such as empty payloads, are
// not checked. Limits: a shard has at most 2 TiB, 2^32 - 2 samples and 2^32 - 2 members. The index has no location for
// payloads of 4 GiB or more, and for sparse payloads, which are stored in pieces without their holes. shard_reader
// reads samples with such payloads.
// Errors: none. Threads: any number of threads may read the index and set checksums concurrently.
#pragma once

#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/format/tar_header.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The locations of entry points in the index file of a shard. An entry point is a position in a payload at which its
// decoder may start. The entries of a payload are the bytes that encode its entry points. The format of the entries
// depends on the decoder. In the file, a CRC-32C of the payload and its entries precedes the entries. Entries are never
// longer than their payload. All entries of a shard together have less than 4 GiB.
// Memory: 4 bytes for each member (file of the archive) of a shard with entries. The entries stay in the file.

/// The ranges of all entries of a shard.
struct entry_table {
  static constexpr std::size_t checksum_bytes = 4;   // size of the checksum before the entries of each payload
  static constexpr std::uint64_t largest_bytes = std::numeric_limits<std::uint32_t>::max();

  bool built = false;                  ///< true if every payload was searched for entry points
  bool in_storage = false;             ///< true if the index file is in the storage, next to the shard
  std::uint64_t begin_at = 0;          ///< offset of the first entries in the file
  std::vector<std::uint32_t> ends{};   ///< end of each member's entries, relative to begin_at; empty if not `built`

  /// Returns the size of all entries including their checksums.
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

/// The size and the modification time of a shard. An index is valid only for a file with the same size and time.
struct shard_identity {
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;   ///< ns since 1970; for a shard in a storage, a digest of the version of its file

  bool operator==(const shard_identity&) const = default;
};

/// One sample, and the range of its members.
struct indexed_sample {
  std::string_view key{};
  std::uint64_t offset_bytes = 0;   ///< offset of the sample's first header block
  std::uint32_t first_member = 0, end_member = 0;
};

/// One member of a sample: a file in the archive.
struct indexed_member {
  std::string_view field{};         ///< field name in lower case
  std::uint64_t offset_bytes = 0;   ///< offset of the payload
  std::uint64_t size_bytes = 0;
  bool in_one_piece = true;   ///< if false, offset_bytes and size_bytes have no meaning
};

/// The numbers of samples, members and fields, and the sizes of the texts. These numbers determine the sizes of all
/// columns.
struct index_counts {
  std::uint32_t samples = 0, members = 0, fields = 0;
  std::uint32_t key_bytes = 0, field_bytes = 0, damage_bytes = 0;

  std::uint64_t text_at() const noexcept {   // offset in bytes of the texts, which follow the columns
    return 4 * (3 * std::uint64_t{samples} + 4 * std::uint64_t{members} + fields);
  }
  std::uint64_t all_bytes() const noexcept;
};

/// All columns in one block of memory, in the layout of the index file.
struct index_columns {
  index_counts counts{};
  std::unique_ptr<std::uint32_t[]> words{};

  index_columns() = default;
  explicit index_columns(const index_counts& c);

  std::span<std::uint32_t> column(std::size_t number) const noexcept {
    const std::size_t samples = counts.samples, members = counts.members;
    if (number < 3) return {words.get() + number * samples, samples};
    if (number < 7) return {words.get() + 3 * samples + (number - 3) * members, members};
    return {words.get() + 3 * samples + 4 * members, counts.fields};
  }
  std::span<std::uint32_t> sample_blocks() const noexcept { return column(0); }   // in units of 512 bytes
  std::span<std::uint32_t> key_ends() const noexcept { return column(1); }
  std::span<std::uint32_t> member_ends() const noexcept { return column(2); }
  std::span<std::uint32_t> payload_blocks() const noexcept { return column(3); }
  std::span<std::uint32_t> payload_sizes() const noexcept { return column(4); }
  std::span<std::uint32_t> member_fields() const noexcept { return column(5); }
  std::span<std::uint32_t> checksums() const noexcept { return column(6); }
  std::span<std::uint32_t> field_ends() const noexcept { return column(7); }

  char* text() const noexcept { return reinterpret_cast<char*>(words.get()) + counts.text_at(); }
  std::string_view keys() const noexcept { return {text(), counts.key_bytes}; }
  std::string_view field_names() const noexcept { return {text() + counts.key_bytes, counts.field_bytes}; }
  std::string_view damage() const noexcept;
  std::span<const std::byte> bytes() const noexcept;

  // If payload_blocks() contains this value for a member, the index has no location for its payload.
  static constexpr std::uint32_t in_pieces = ~std::uint32_t{0};
};

/// The index of one shard.
class shard_index {
 public:
  /// The completeness of the index.
  enum class shard_state : std::uint32_t {
    complete,    ///< the index has every sample of the shard
    damaged,     ///< the index has the samples before the first damage
    compressed   ///< the index has no samples, because no sample of the shard can be read by its offset
  };

  /// The properties of the shard, without its samples.
  struct shard_facts {
    shard_state state = shard_state::complete;
    shard_identity identity{};
    std::uint64_t fingerprint = 0;           ///< digest of all columns except the checksums
    std::uint64_t damage_offset_bytes = 0;   ///< offset of the damage
    std::uint64_t resume_offset_bytes = 0;   ///< end of the last sample; a reader that starts here finds the damage
    shard_counters counters{};               ///< number of samples, and number of skipped members
  };

  /// Creates an empty index.
  shard_index() = default;
  /// Creates the index from its parts, which must be consistent.
  shard_index(shard_facts facts, index_columns columns) noexcept;

  /// Returns the properties of the shard.
  const shard_facts& facts() const noexcept { return facts_; }
  /// Returns the completeness of the index.
  shard_state state() const noexcept { return facts_.state; }
  /// Returns the size and time of the shard.
  const shard_identity& identity() const noexcept { return facts_.identity; }
  /// Sets the size and time of the shard.
  void identify(const shard_identity& identity) noexcept { facts_.identity = identity; }
  /// Returns a digest of the members' names, sizes and offsets.
  std::uint64_t fingerprint() const noexcept { return facts_.fingerprint; }
  /// Returns the description of the damage, or "" if the shard is not damaged.
  std::string_view damage() const noexcept { return columns_.damage(); }

  /// Returns the number of samples.
  std::uint32_t samples() const noexcept { return columns_.counts.samples; }
  /// Returns the total number of members of the samples.
  std::uint32_t members() const noexcept { return columns_.counts.members; }
  /// Counts the samples with the key of an earlier sample, and stores the count in facts().counters. An index file does
  /// not contain this count.
  void count_returning_keys();
  /// Returns the number of different fields.
  std::uint32_t fields() const noexcept { return columns_.counts.fields; }

  /// Returns sample `number`, counted from 0.
  indexed_sample sample(std::uint32_t number) const noexcept;

  /// Returns member `number`, counted from 0.
  indexed_member member(std::uint32_t number) const noexcept;
  /// Returns the number that identifies the field of a member. field_name() returns the name for this number.
  std::uint32_t field_of(std::uint32_t member) const noexcept { return columns_.member_fields()[member]; }
  /// Returns the name of the field with that number.
  std::string_view field_name(std::uint32_t field) const noexcept;

  /// Returns the CRC-32C of a member's payload, or 0 if it is unknown.
  std::uint32_t checksum(std::uint32_t member) const noexcept;
  /// Sets the checksum of a member if no checksum is known. Returns the checksum that is stored after the call.
  std::uint32_t learn_checksum(std::uint32_t member, std::uint32_t checksum) noexcept;
  /// Sets the checksum of a member, even if a checksum is known.
  void set_checksum(std::uint32_t member, std::uint32_t checksum) noexcept;
  /// Copies the checksums of an older index of the shard, for members that have not moved. A member has not moved if
  /// its key, field, offset and size are the same. Call this function before any thread uses this index.
  void copy_checksums_from(const shard_index& before) noexcept;
  /// Returns whether this index begins with the samples of `part`: the same keys at the same offsets.
  bool begins_with(const shard_index& part) const noexcept;
  /// Returns the number of known checksums.
  std::uint64_t known_checksums() const noexcept;

  /// Returns the locations of the payloads' entry points.
  const entry_table& entries() const noexcept { return entries_; }
  /// Sets the locations of the payloads' entry points. Must not be called while other threads use the index.
  void set_entries(entry_table entries) noexcept { entries_ = std::move(entries); }

  /// Returns the columns, for index_format.hpp.
  const index_columns& columns() const noexcept { return columns_; }

 private:
  static constexpr std::uint64_t block_bytes = tar_block_bytes;

  /// Returns whether `now` and `then` have the same field, offset and size. If the payloads have no location,
  /// `same_fingerprint` replaces the comparison of offset and size.
  static bool is_unmoved(const indexed_member& now, const indexed_member& then, bool same_fingerprint) noexcept;

  shard_facts facts_{};
  index_columns columns_{};
  entry_table entries_{};
};

// These functions are inline because they are called for each sample.
inline indexed_sample shard_index::sample(std::uint32_t number) const noexcept {
  const auto keys = columns_.key_ends(), members = columns_.member_ends();
  const std::uint32_t key_at = number == 0 ? 0 : keys[number - 1];
  return {.key = columns_.keys().substr(key_at, keys[number] - key_at),
          .offset_bytes = block_bytes * columns_.sample_blocks()[number],
          .first_member = number == 0 ? 0 : members[number - 1],
          .end_member = members[number]};
}

inline indexed_member shard_index::member(std::uint32_t number) const noexcept {
  const std::uint32_t block = columns_.payload_blocks()[number];
  return {.field = field_name(columns_.member_fields()[number]),
          .offset_bytes = block_bytes * block,
          .size_bytes = columns_.payload_sizes()[number],
          .in_one_piece = block != index_columns::in_pieces};
}

inline std::string_view shard_index::field_name(std::uint32_t field) const noexcept {
  const auto ends = columns_.field_ends();
  const std::uint32_t at = field == 0 ? 0 : ends[field - 1];
  return columns_.field_names().substr(at, ends[field] - at);
}

inline std::uint32_t shard_index::checksum(std::uint32_t member) const noexcept {
  // Uses the compiler's function, because libc++ 14 lacks std::atomic_ref.
  return __atomic_load_n(&columns_.checksums()[member], __ATOMIC_RELAXED);
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/shard_index.inl>
#endif
