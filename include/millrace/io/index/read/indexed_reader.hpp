// Reads samples of a shard in any order, with large reads, by means of the shard's index.
//
//   mr::detail::indexed_reader shard(source, index, pool, {.fields = {"jpg;png", "cls"}});
//   std::size_t good = shard.read(numbers, records);     // records[i] is sample numbers[i]
//   if (good < numbers.size()) std::rethrow_exception(shard.failure());      // failure of sample numbers[good]
//
// The records are identical to the records of shard_reader. One call of read() reads its samples in shard order. It
// reads neighbors together, up to `bytes_per_read`, into one block of memory. A record keeps the complete block alive.
// Therefore request together the samples that are used at about the same time. Payloads begin at multiples of 64 bytes.
// A small gap between two requested payloads is read too. If the source reads parts, large gaps are not stored in the
// block, because all large gaps are read to one small buffer. Small samples then need less memory, and more of them
// stay in the processor's cache.
// CRC-32C: the reader checks known checksums. It computes unknown checksums and records them in the index;
// index_file.hpp stores them. record::checksums() returns the checksums of a record.
// Entry points: if the reader has the index file, fields get the entry points that the file contains for them
// (bytes::entries()). The reader first checks the CRC-32C over payload and entries. It omits and counts wrong or
// unreadable entries, because a decoder does not need entries.
// Errors: the errors of shard_reader for the same sample; data_error for a payload whose checksum changed, and for a
// shard that is shorter than its index states; io_error of the source. The next call is independent of a failed call.
// Threads: one thread at a time per reader; any number of readers share an index.
// Lifetime: source, index and pool must outlive the reader; records may outlive all of them.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/io/index/format/shard_index.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of indexed_reader.
struct indexed_reader_options {
  std::vector<std::string> fields{};                         ///< selected fields, as in shard_reader_options
  shard_limits limits{};                                     ///< a sample beyond them is an error before it is read
  std::size_t bytes_per_read = std::size_t{1} << 20;         ///< a larger sample is read separately
  std::size_t largest_gap_bytes = std::size_t{32} << 10;     ///< a larger gap is skipped, not read
  bool checksums = true;                                     ///< checks and learns checksums
};

/// The counts of a reader.
struct indexed_reader_counters {
  std::uint64_t samples = 0, payload_bytes = 0;
  std::uint64_t reads = 0, read_bytes = 0;
  std::uint64_t checksums_checked = 0, checksums_learned = 0;
  std::uint64_t with_entries = 0, entries_refused = 0;   ///< number of fields
};

/// Reads samples of one shard by their numbers.
class indexed_reader {
 public:
  /// Throws setup_error if a selected field has upper-case letters. `entries` is the file of the index; null: entry
  /// points are not read.
  indexed_reader(byte_source& source, shard_index& index, block_pool& pool, indexed_reader_options options = {},
                 byte_source* entries = nullptr);

  /// Reads the samples `numbers` into `records`, which has the same size. Returns how many samples at the front of
  /// `numbers` are good. If not all are good, failure() returns the error of the next sample.
  std::size_t read(std::span<const std::uint32_t> numbers, std::span<record> records);

  /// Announces to the source the bytes that read() will need for these samples. `numbers` must be in the order of the
  /// shard.
  void announce(std::span<const std::uint32_t> numbers);

  /// Returns the error of the first failed sample of the last read(); null if there is none.
  std::exception_ptr failure() const noexcept { return failure_; }
  /// Returns and clears failure(), because the error and the reader may move to different threads.
  std::exception_ptr take_failure() noexcept { return std::exchange(failure_, nullptr); }

  /// Returns one sample. Throws the error of the sample if it cannot be read.
  record read_one(std::uint32_t number);

  /// Throws the error that shard_reader throws after the last good sample. Call this for a shard that is damaged
  /// according to its index.
  [[noreturn]] void throw_damage();

  /// Throws the error that shard_reader throws with the option strict. Call this for a shard that has no end marker
  /// according to its index.
  [[noreturn]] void throw_missing_end_marker();

  /// Returns the counts so far.
  const indexed_reader_counters& counters() const noexcept { return counters_; }
  /// Returns the name of the source.
  std::string_view shard() const noexcept { return source_->name(); }

 private:
  static constexpr std::size_t alignment = 64;   // alignment of each piece in memory, in bytes
  static constexpr std::size_t prefetch_bytes = 1'024;   // prefetched bytes of the memory after the payloads
  static constexpr std::size_t gap_bytes = 2'048;   // few enough to stay in the first-level cache

  struct field_state {
    bool selected = false;
    std::string_view name{};
    std::size_t used_in = 0;            // last added sample with this field, numbered from 1
    std::size_t last_block = 0;       // last block with its name, numbered from 1
    std::size_t name_at = 0;
  };
  struct piece {                    // one read
    std::uint64_t offset_bytes;
    std::size_t at, size;           // size in the file; in memory smaller if gaps are omitted
    std::size_t first_part;
  };
  struct part {                     // one payload
    std::uint32_t member;
    std::uint64_t offset_bytes;     // in the file
    std::size_t at, size;
    std::uint32_t checksum = 0;     // checksum of a payload without an error; 0: unknown
  };
  struct block_sample {
    std::size_t position;           // index in the caller's list
    std::uint32_t number;
    indexed_sample entry;
    std::size_t first_part, end_part;
  };

  static std::size_t aligned(std::size_t at, std::size_t to) noexcept { return (at + to - 1) / to * to; }

  void begin_block();

  /// Adds a sample to the current block. Returns false, and changes nothing, if the sample does not fit into this
  /// block, or into any block.
  bool add(std::size_t position, std::uint32_t number);
  void add_part(std::uint32_t number, const indexed_member& member);
  /// Returns the offset of a payload in the block. A gap that is small compared with the previous payload is stored in
  /// the block, because this is cheaper than another buffer for the system to fill.
  std::size_t place_of(const indexed_member& member, const piece& in) const noexcept;
  void finish_block();
  void fill_block();
  /// Reads piece `number` to its offset from `payloads`, the start of the payloads. Returns the number of bytes read.
  std::size_t read_piece(std::size_t number, std::byte* payloads);
  void announce_entries(std::span<const std::uint32_t> numbers);
  void add_entries(std::uint32_t member);
  /// Reads the entries of all payloads in the block to `at` and after it; `lead` is the offset of the payloads.
  void fill_entries(block& to, std::size_t lead, std::size_t at);
  struct run_of_parts {             // parts whose entries are contiguous in the file
    std::size_t first, end, lead;
  };
  /// Attaches the entries with a correct checksum. `read` contains the entries of the parts, as far as they were
  /// readable.
  void check_entries(const run_of_parts& parts, block& to, std::span<const std::byte> read);
  static std::size_t put(std::byte* base, std::size_t& at, std::string_view text) noexcept {
    if (!text.empty()) std::memcpy(base + at, text.data(), text.size());
    return std::exchange(at, at + text.size());
  }
  void name_field(std::byte* base, std::size_t& at, std::uint32_t member) {
    field_state& field = fields_[index_->field_of(member)];
    if (std::exchange(field.last_block, block_number_) == block_number_) return;
    field.name_at = put(base, at, field.name);
  }

  /// Reads a sample with shard_reader, because the sample has sparse members or because reading it is an error.
  void read_alone(std::size_t position, std::uint32_t number);
  struct part_of_shard {
    std::uint32_t number;           // number of its first sample
    std::uint64_t offset_bytes, end_bytes = ~std::uint64_t{0};
    bool strict = false;
  };
  shard_reader reader_of(const part_of_shard& p);

  struct check_result {
    std::uint32_t checksum = 0;
    std::exception_ptr mismatch{};
  };

  check_result check(std::uint32_t number, std::uint32_t member, std::span<const std::byte> payload);
  /// Returns whether the shard ends before the end of a sample.
  bool is_cut_before_end_of(std::uint32_t number) noexcept;
  void record_failure(std::size_t position, std::exception_ptr error);
  error_location where(std::string_view key, std::uint64_t offset_bytes) const;

  byte_source* source_;
  byte_source* entries_;              // null: no entries are read
  shard_index* index_;
  block_pool* pool_;
  indexed_reader_options options_;
  std::vector<field_state> fields_;   // indexed by the field's number
  std::vector<std::size_t> order_;    // positions of the caller's list in the order of the shard
  std::vector<block_sample> planned_;
  std::vector<part> parts_;
  std::vector<piece> pieces_;
  std::vector<std::byte> gap_;        // buffer for large gaps; empty: all gaps stay between the payloads
  std::vector<std::span<std::byte>> places_;
  std::vector<entries_place> with_entries_;
  std::size_t block_entries_ = 0;     // number of payloads in the block with entries
  std::size_t payload_bytes_ = 0, tail_bytes_ = 0, block_number_ = 0, added_ = 0;
  std::span<record> records_;
  std::size_t failed_at_ = 0;
  std::exception_ptr failure_;
  indexed_reader_counters counters_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/read/impl/indexed_reader.inl>
#endif
