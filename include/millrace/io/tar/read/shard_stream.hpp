// The bytes of a shard or a text file in chunks: unchanged from the source, or decompressed.
//
//   mr::detail::shard_stream stream(source, pool);
//   for (auto chunk = stream.next_chunk(); !chunk.empty(); chunk = stream.next_chunk()) use(chunk);
//   stream.end_bytes();              // the total number of bytes
//
// The first bytes, never the name, determine the compression. zlib reads gzip; libarchive reads bzip2, xz, zstd and
// lz4. All decompression runs in the process. Consecutive compressed members are read as one stream. Skippable frames
// are skipped. Offsets count uncompressed bytes. A caller that copies large pieces passes the destination to
// next_chunk(). A plain stream then reads directly into it.
// Errors: the errors of the source; setup_error if libarchive cannot read the compression without an external program;
// late_data_error if the stream is damaged or truncated; data_error if the source is empty, or if anything but zeros
// follows the compressed stream; data_error if the stream grows to more than 64 MiB and to more than `max_expansion`
// times the size of the source. The checksums of each format show damage at the end of the stream at the latest. A
// truncated gzip stream first delivers all bytes before the truncation. `max_expansion` applies to the complete source;
// a part of it may expand more.
// Memory: one buffer of `chunk_bytes` from the pool, which then lends it to the next stream; gzip needs another buffer
// of 256 KiB. The window of zstd needs at most 128 MiB. The window of xz has the size that the file states, at most
// 4 GiB.
// Threads: not thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/limits.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/read/archive.hpp>
#include <millrace/io/tar/read/gzip_inflater.hpp>
#include <millrace/item/bytes.hpp>

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

  /// The kind of content: the stage for messages, whether an empty source is allowed, and how far it may expand.
  struct content {
    const char* stage = "tar";
    bool may_be_empty = false;
    std::uint64_t max_expansion = shard_limits{}.max_expansion;
  };

  shard_stream(byte_source& source, block_pool& pool) : shard_stream(source, pool, content{}) {}
  shard_stream(byte_source& source, block_pool& pool, content c);
  shard_stream(const shard_stream&) = delete;
  shard_stream& operator=(const shard_stream&) = delete;

  /// Returns the next bytes, valid until the next call; empty at the end. A plain stream may read
  /// directly into `place`, and then returns its front. Pass `place` only if you would copy the bytes there otherwise.
  std::span<const std::byte> next_chunk(std::span<std::byte> place = {});

  /// Skips `count_bytes` without reading them. Returns the number of skipped bytes, which is 0 if skipping is
  /// impossible or not worthwhile.
  std::uint64_t skip(std::uint64_t count_bytes);

  std::uint64_t end_bytes() const noexcept { return end_bytes_; }   ///< bytes delivered or skipped so far
  std::uint64_t zeros_from_bytes() const noexcept { return zeros_from_bytes_; }   ///< all bytes from here on were 0
  /// Returns whether the source is compressed.
  bool compressed() const noexcept { return gzip_ || decompressor_; }

  /// Returns whether a plain stream has `end_bytes` bytes, or whether a compressed stream may expand to that size. If
  /// the result is false for a compressed stream, next_chunk() throws before it has returned that many bytes.
  bool may_reach(std::uint64_t end_bytes);

  /// Returns the error for a compressed stream that grows to `end_bytes` bytes although may_reach() returned false.
  data_error too_expanded(std::uint64_t end_bytes) const;

  /// Reads up to 64 MiB more. Returns true if the stream is undamaged up to its end, and false if the end is further
  /// away. Throws the error for a damaged stream. The stream cannot be read after this call. Damaged bytes can look
  /// like another error in the archive. Therefore callers call this function before they report such an error.
  bool is_sound_to_its_end();

 private:
  static constexpr std::size_t inflated_bytes = std::size_t{256} << 10;
  static constexpr std::size_t worth_a_read_bytes = std::size_t{32} << 10;   // a read costs less than a copy
  static constexpr std::size_t lookahead_bytes = std::size_t{4} << 10;   // the next headers, and small members
  static constexpr std::uint64_t free_expansion_bytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t largest_offset = ~std::uint64_t{0} >> 1;

  struct compression {
    std::string_view name, magic;
    int (*enable)(struct ::archive*);   // null for gzip
  };

  static const compression* compression_of(std::span<const std::byte> start) noexcept;

  /// Skips the skippable frames at the start of a zstd or lz4 stream, because libarchive does not recognize a stream
  /// that begins with such frames. pzstd always writes them. Sets `start` to the bytes after the frames. Returns null
  /// if no zstd or lz4 stream follows.
  const compression* compression_after_skippable_frames(std::span<const std::byte>& start);
  void open_decompressor(const compression& method);
  std::span<const std::byte> read_source();
  /// Reads once: into `place`, and the next few bytes of the source into its own buffer. Returns the filled part of
  /// `place`.
  std::span<const std::byte> read_into(std::span<std::byte> place);

  /// Callback of libarchive. Exceptions must not propagate through C frames, so source_failure_ stores them.
  static ::la_ssize_t read_compressed(struct ::archive*, void* self, const void** data) noexcept;

  /// Fills the buffer of inflated bytes. If the stream is damaged, only the bytes up to the last member with a correct
  /// checksum are delivered. If the stream is truncated, all bytes are delivered.
  std::span<const std::byte> inflate();
  void end_gzip_member();
  std::span<const std::byte> decompress();

  /// Returns whether the source has at least `count_bytes` bytes. Reads a few single bytes ahead.
  bool source_has(std::uint64_t count_bytes);
  bool source_has_byte(std::uint64_t offset_bytes);
  /// Throws data_error if anything but zeros follows the last compressed member.
  void check_tail(std::uint64_t at);
  [[noreturn]] void fail_to_decompress();
  /// Returns the error for a truncated stream. It is a late_data_error, because a flipped bit can look like a
  /// truncation, and then the bytes before it may also be wrong.
  late_data_error cut_short(std::uint64_t at) const;
  late_data_error damage(const std::string& problem) const;
  error_location where(std::uint64_t offset_bytes) const;

  byte_source* source_;
  block_pool* pool_;
  content content_;
  block_ref block_;
  std::span<const std::byte> peeked_;   // already read, not yet delivered
  std::size_t read_bytes_ = chunk_bytes;   // size of the next read; small after a read into `place`
  std::uint64_t source_read_bytes_ = 0;
  std::uint64_t source_proven_bytes_ = 0;   // the source has at least this many bytes
  bool source_size_proven_ = false;         // true: the source has exactly that many bytes
  std::uint64_t end_bytes_ = 0;
  std::uint64_t zeros_from_bytes_ = 0;
  std::uint64_t skipped_bytes_ = 0;   // bytes before the first compressed member
  std::string_view method_name_;
  std::unique_ptr<gzip_inflater> gzip_;
  block_ref inflated_;
  std::span<const std::byte> compressed_;   // rest of the buffer, not yet inflated
  bool gzip_ended_ = false;
  std::uint64_t gzip_end_bytes_ = 0;   // end of the last member, offset in the source
  std::exception_ptr gzip_failure_;
  archive_reader decompressor_;
  bool opened_ = false;
  std::exception_ptr source_failure_;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/shard_stream.inl>
#endif
