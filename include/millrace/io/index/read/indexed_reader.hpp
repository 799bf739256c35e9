// Reads samples of a shard in any order, with large reads. The shard's index provides the locations of the samples.
//
//   mr::detail::indexed_reader shard(source, index, pool, {.fields = {"jpg;png", "cls"}});
//   std::size_t good = shard.read(numbers, records);     // records[i] is sample numbers[i], for i < good
//   if (good < numbers.size()) std::rethrow_exception(shard.failure());      // the error of sample numbers[good]
//
// The records are identical to those of shard_reader (io/tar/read/shard_reader.hpp). Neighboring samples are read
// together, up to `bytes_per_read`, into one block of memory. A record keeps the complete block alive. Therefore
// request samples together if they are used at about the same time. Payloads begin at multiples of 64 bytes.
// A gap consists of the bytes between two requested payloads. Gaps above `largest_gap_bytes` are not read. A smaller
// gap is read together with the payloads, and usually becomes a part of the block. If the source can fill several
// buffers with one read, gaps above a quarter of the preceding payload are discarded, so that the block is smaller.
// Checksums: the reader checks known CRC-32C checksums. It computes unknown checksums, and records them in the index.
// Entry points (positions where a decoder may start): if the reader has the index file, it attaches entry points to the
// fields (bytes::entries()). Wrong or unreadable entry points are omitted and counted.
// Errors: the errors that shard_reader throws for the same sample, and the errors of the source. data_error if the
// checksum of a payload has changed, or if the shard is shorter than its index states. After an error, the reader
// remains usable.
// Threads: one thread at a time per reader. Any number of readers may share an index.
// Lifetime: source, index and pool must outlive the reader. Records may outlive all of them.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/io/file/storage.hpp>
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
  std::vector<std::string> fields{};                   ///< selected fields, see shard_reader_options
  shard_limits limits{};                               ///< a sample that exceeds a limit is an error, and is not read
  std::size_t bytes_per_read = std::size_t{1} << 20;   ///< maximum for one block; a larger sample gets its own block
  std::size_t largest_gap_bytes = std::size_t{32} << 10;   ///< larger gaps between payloads are not read
  storage sidecars{};                                      ///< the storage of the shards' sidecar files
  bool checksums = true;                                   ///< checks known checksums, and learns unknown ones
};

/// The counts of a reader.
struct indexed_reader_counters {
  std::uint64_t samples = 0, payload_bytes = 0;
  std::uint64_t reads = 0, read_bytes = 0;
  std::uint64_t checksums_checked = 0, checksums_learned = 0;
  /// The number of fields with attached entry points, and the number of fields whose entry points were omitted.
  std::uint64_t with_entries = 0, entries_refused = 0;
};

/// Reads samples of one shard by their numbers.
class indexed_reader {
 public:
  /// Throws setup_error if a selected field has upper-case letters. `entries` is the index file. If it is null, the
  /// reader reads no entry points.
  indexed_reader(byte_source& source, shard_index& index, block_pool& pool, indexed_reader_options options = {},
                 byte_source* entries = nullptr);

  /// Sets the pool of later reads. Must not be called during a read.
  void set_pool(block_pool& pool) noexcept { pool_ = &pool; }

  /// Reads the samples `numbers` into `records`, which has the same size. Returns the number of samples before the
  /// first error. failure() returns this error.
  std::size_t read(std::span<const std::uint32_t> numbers, std::span<record> records);

  /// Announces to the source the bytes that read() will need for these samples. `numbers` must be in ascending order.
  void announce(std::span<const std::uint32_t> numbers);

  /// Returns the error of the first failed sample of the last read(), or null if no sample failed.
  std::exception_ptr failure() const noexcept { return failure_; }
  /// Returns and clears failure().
  std::exception_ptr take_failure() noexcept { return std::exchange(failure_, nullptr); }

  /// Returns one sample. Throws the error of the sample if it cannot be read.
  record read_one(std::uint32_t number);

  /// Throws the error that shard_reader throws after the last good sample. Requires that the index records damage.
  [[noreturn]] void throw_damage();

  /// Throws the error of a shard_reader (option `strict`) for a missing end marker. Requires that the index records the
  /// missing end marker.
  [[noreturn]] void throw_missing_end_marker();

  /// Returns the counts so far.
  const indexed_reader_counters& counters() const noexcept { return counters_; }
  /// Returns the name of the source.
  std::string_view shard() const noexcept { return source_->name(); }

 private:
  static constexpr std::size_t alignment = 64;   // alignment of each piece in memory, in bytes
  // While the reader writes keys and names after the payloads, it prefetches this number of bytes into the CPU's cache.
  static constexpr std::size_t prefetch_bytes = 1'024;
  static constexpr std::size_t gap_bytes = 2'048;   // size of gap_; small enough to stay in the first-level cache

  struct field_state {
    bool selected = false;
    std::string_view name{};
    std::size_t used_in = 0;      // number (from 1) of the last added sample that has this field
    std::size_t last_block = 0;   // number (from 1) of the last block that contains the field's name
    std::size_t name_at = 0;
  };
  struct piece {   // one read
    std::uint64_t offset_bytes;
    std::size_t at, size;   // size in the file; the size in memory is smaller if gaps are omitted
    std::size_t first_part;
  };
  struct part {   // one payload
    std::uint32_t member;
    std::uint64_t offset_bytes;   // in the file
    std::size_t at, size;
    std::uint32_t checksum = 0;   // 0 if the checksum does not match or was not computed
  };
  struct block_sample {
    std::size_t position;   // index in the caller's list
    std::uint32_t number;
    indexed_sample entry;
    std::size_t first_part, end_part;
  };

  static std::size_t aligned(std::size_t at, std::size_t to) noexcept { return (at + to - 1) / to * to; }

  void begin_block();

  /// Adds a sample to the current block. If the block cannot contain the sample, returns false and leaves the block
  /// unchanged.
  bool add(std::size_t position, std::uint32_t number);
  void add_part(std::uint32_t number, const indexed_member& member);
  /// Returns the offset of a payload in the block. If the gap before the payload is above a quarter of the previous
  /// payload, the block omits the gap.
  std::size_t place_of(const indexed_member& member, const piece& in) const noexcept;
  void finish_block();
  void fill_block();
  /// Reads piece `number` into its place in memory. `payloads` points to the first payload. Returns the number of bytes
  /// read.
  std::size_t read_piece(std::size_t number, std::byte* payloads);
  void announce_entries(std::span<const std::uint32_t> numbers);
  void add_entries(std::uint32_t member);
  /// Reads the entries of all payloads in the block. Stores the entries in the block, from offset `at`. `lead` is the
  /// offset of the first payload in the block.
  void fill_entries(block& to, std::size_t lead, std::size_t at);
  struct run_of_parts {   // parts whose entries are contiguous in the file
    std::size_t first, end, lead;
  };
  /// Attaches the entries with a correct checksum. `read` contains the bytes that could be read.
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

  /// Reads a sample with shard_reader, because add() refused the sample. Such a sample has a payload without a location
  /// in the index, exceeds a limit, or has a field twice.
  void read_alone(std::size_t position, std::uint32_t number);
  struct part_of_shard {
    std::uint32_t number;   // number of the first sample of the part
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
  byte_source* entries_;   // null if no entries are read
  shard_index* index_;
  block_pool* pool_;
  indexed_reader_options options_;
  std::vector<field_state> fields_;   // indexed by the field's number
  std::vector<std::size_t> order_;    // positions in the caller's list, sorted by the order of the samples in the shard
  std::vector<block_sample> planned_;
  std::vector<part> parts_;
  std::vector<piece> pieces_;
  std::vector<std::byte> gap_;   // buffer for omitted gaps; empty if the block omits no gaps
  std::vector<std::span<std::byte>> places_;
  std::vector<entries_place> with_entries_;
  std::size_t block_entries_ = 0;   // number of payloads with entries in the block
  std::size_t payload_bytes_ = 0, tail_bytes_ = 0, block_number_ = 0, added_ = 0;
  std::span<record> records_;
  std::size_t failed_at_ = 0;
  std::exception_ptr failure_;
  indexed_reader_counters counters_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/read/impl/indexed_reader.inl>
#endif
