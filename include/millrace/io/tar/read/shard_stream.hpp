// The bytes of a shard or a text file in chunks. Compressed files are decompressed.
//
//   mr::detail::shard_stream stream(source, pool);
//   for (auto chunk = stream.next_chunk(); !chunk.empty(); chunk = stream.next_chunk()) use(chunk);
//   stream.end_bytes();              // number of bytes delivered or skipped so far
//
// The first bytes of the file determine the compression; the name of the file is ignored. zlib reads gzip. libarchive
// reads bzip2, xz, zstd and lz4, without external programs. Consecutive compressed members are read as one stream. The
// skippable frames of zstd and lz4, which contain no data of the shard, are ignored. Offsets count uncompressed bytes.
// A caller that copies large pieces passes the destination to next_chunk(). A plain (uncompressed) stream then reads
// directly into the destination.
// Errors:
// - the errors of the source
// - setup_error if libarchive cannot read the compression without an external program
// - late_data_error if a compressed stream is damaged or truncated
// - data_error if the source is empty, if bytes other than zeros follow the compressed stream, or if the stream expands
//   to more than 64 MiB and more than `max_expansion` times the size of the complete source
//
// Some damage is not detected before the end of the stream, where the formats store checksums. A truncated gzip stream
// first delivers all bytes before the truncation.
// Memory: one buffer of `chunk_bytes` from the pool. Later streams reuse the buffer. gzip needs another buffer of 256
// KiB. The window of zstd needs at most 128 MiB. An xz file states the size of its window, at most 4 GiB.
// Threads: not thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/limits.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/read/archive.hpp>
#include <millrace/io/tar/read/gzip_inflater.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/owner.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The chunks of one shard.
class shard_stream {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t{512} << 10;

  /// Properties of the content: the stage that messages name, whether the source may be empty, and the maximum
  /// expansion.
  struct content {
    const char* stage = "tar";
    bool may_be_empty = false;
    std::uint64_t max_expansion = shard_limits{}.max_expansion;
  };

  shard_stream(byte_source& source, block_pool& pool) : shard_stream(source, pool, content{}) {}
  shard_stream(byte_source& source, block_pool& pool, content c);
  shard_stream(const shard_stream&) = delete;
  shard_stream& operator=(const shard_stream&) = delete;
  MILLRACE_RARE ~shard_stream() = default;

  /// Returns the next bytes, valid until the next call. Returns no bytes at the end. A plain stream may read directly
  /// into `place`. In this case the result is the filled part of `place`. Pass `place` only if it is the final
  /// destination of the bytes.
  std::span<const std::byte> next_chunk(std::span<std::byte> place = {});

  /// Skips `count_bytes` without reading them. Returns the number of skipped bytes, which is 0 if the stream cannot
  /// skip, or if reading is cheaper.
  std::uint64_t skip(std::uint64_t count_bytes);

  std::uint64_t end_bytes() const noexcept { return end_bytes_; }   ///< bytes delivered or skipped so far
  /// Returns an offset. All bytes from this offset to end_bytes() are 0.
  std::uint64_t zeros_from_bytes() const noexcept { return zeros_from_bytes_; }
  /// Returns whether the source is compressed.
  bool compressed() const noexcept { return gzip_ || decompressor_; }

  /// For a plain stream, returns whether it has at least `end_bytes` bytes. For a compressed stream, returns whether it
  /// may expand to `end_bytes` bytes.
  bool may_reach(std::uint64_t end_bytes);

  /// Returns the error for a compressed stream that expands to `end_bytes` bytes. Requires may_reach(end_bytes) to be
  /// false.
  data_error too_expanded(std::uint64_t end_bytes) const;

  /// Reads up to 64 MiB more. Returns true if the stream is undamaged up to its end. Returns false if the stream does
  /// not end within the 64 MiB. Throws the error for a damaged stream. The stream cannot be read after this call. Call
  /// this function before you report an error in the archive, because damaged bytes can look like such an error.
  bool is_sound_to_its_end();

 private:
  static constexpr std::size_t inflated_bytes = std::size_t{256} << 10;
  // Up to this size, a copy is cheaper than a separate read.
  static constexpr std::size_t worth_a_read_bytes = std::size_t{32} << 10;
  // A read into `place` also reads this number of bytes after it. They contain the next headers and small members.
  static constexpr std::size_t lookahead_bytes = std::size_t{4} << 10;
  static constexpr std::uint64_t free_expansion_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t largest_offset = ~std::uint64_t{0} >> 1;

  struct compression {
    std::string_view name, magic;
    int (*enable)(struct ::archive*);   // null for gzip
  };

  static const compression* compression_of(std::span<const std::byte> start) noexcept;

  /// Skips skippable frames at the start of a zstd or lz4 stream, because libarchive does not recognize them. pzstd
  /// always writes such frames. Sets `start` to the bytes after the frames. Returns null if neither zstd nor lz4
  /// follows the frames.
  const compression* compression_after_skippable_frames(std::span<const std::byte>& start);
  void open_decompressor(const compression& method);
  std::span<const std::byte> read_source();
  /// Reads into `place` with one read. The same read stores the next bytes of the source in the stream's buffer.
  /// Returns the filled part of `place`.
  std::span<const std::byte> read_into(std::span<std::byte> place);

  /// Callback of libarchive. Stores exceptions in source_failure_, because they must not propagate through C frames.
  static ::la_ssize_t read_compressed(struct ::archive*, void* self, const void** data) noexcept;

  /// Fills the buffer of inflated bytes. If the stream is damaged, delivers only the bytes up to the last member with a
  /// correct checksum. If the stream is truncated, delivers all bytes before the truncation.
  std::span<const std::byte> inflate();
  void end_gzip_member();
  std::span<const std::byte> decompress();

  /// Returns whether the source has at least `count_bytes` bytes. Reads single bytes to find out.
  bool source_has(std::uint64_t count_bytes);
  bool source_has_byte(std::uint64_t offset_bytes);
  /// Throws data_error if bytes other than zeros follow the last compressed member.
  void check_tail(std::uint64_t at);
  [[noreturn]] void fail_to_decompress();
  /// Returns the error for a truncated stream. The cause may also be a flipped bit. In that case, bytes before the end
  /// may be wrong, too.
  late_data_error cut_short(std::uint64_t at) const;
  late_data_error damage(const std::string& problem) const;
  error_location where(std::uint64_t offset_bytes) const;

  byte_source* source_;
  block_pool* pool_;
  content content_;
  block_ref block_;
  std::span<const std::byte> peeked_;      // bytes that were read, but not delivered
  std::size_t read_bytes_ = chunk_bytes;   // size of the next read; small after a read into `place`
  std::uint64_t source_read_bytes_ = 0;
  std::uint64_t source_proven_bytes_ = 0;   // the source has at least this many bytes
  bool source_size_proven_ = false;         // true if source_proven_bytes_ is the size of the source
  std::uint64_t end_bytes_ = 0;
  std::uint64_t zeros_from_bytes_ = 0;
  std::uint64_t skipped_bytes_ = 0;   // bytes before the first compressed member
  std::string_view method_name_;
  owner<gzip_inflater> gzip_;
  block_ref inflated_;
  std::span<const std::byte> compressed_;   // compressed bytes in block_ that are not inflated yet
  bool gzip_ended_ = false;
  std::uint64_t gzip_end_bytes_ = 0;   // the last gzip member ends at this offset of the source
  std::exception_ptr gzip_failure_;
  archive_reader decompressor_;
  bool opened_ = false;
  std::exception_ptr source_failure_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/shard_stream.inl>
#endif
