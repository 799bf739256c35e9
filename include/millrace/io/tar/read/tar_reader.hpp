// Reads the members of a plain or compressed tar archive in order, and checks that the archive is complete.
//
//   mr::detail::tar_reader tar(std::make_unique<mr::file_source>("train-000.tar"), pool);
//   while (auto member = tar.next())
//     if (member->regular) { buffer.resize(member->size_bytes); tar.read(buffer); }
//
// Formats: v7, ustar, GNU (long names, sparse, base-256 sizes), pax. Holes become zeros. Only zeros, at most 16 MiB,
// may follow the end marker (two blocks of 512 zeros). Other data after the end marker is an error.
// If all members are complete, a missing or incomplete end marker is an error only with options.strict. Otherwise,
// ended_without_marker() returns true. A truncation inside a member is always an error. Flipped bits in a payload of a
// plain shard are not detected. The checksums of a compressed shard detect flipped bits, but possibly not before the
// end of the shard.
// Errors: data_error with the shard and the offset of the member's first header block. Offsets count uncompressed
// bytes. late_data_error for a damaged compressed stream. Also the errors of the source. After an error, the reader is
// unusable.
// Threads: one thread at a time.
// Names are returned as they are stored. However, if the locale of the process is neither "C" nor UTF-8, libarchive
// converts pax names to the character set of the locale.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/format/tar_fields.hpp>
#include <millrace/io/tar/format/tar_member.hpp>
#include <millrace/io/tar/read/archive.hpp>
#include <millrace/io/tar/read/shard_stream.hpp>
#include <millrace/item/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of tar_reader.
struct tar_reader_options {
  std::uint64_t start_bytes = 0;   ///< offset of the first header block to read; must be 0 in a compressed shard
  bool strict = false;             ///< treats a shard without an end marker as an error
  std::uint64_t max_expansion = shard_limits{}.max_expansion;   ///< limit for decompression, see shard_limits
};

/// The members of one archive.
class tar_reader {
 public:
  using options = tar_reader_options;

  /// Opens the archive and determines its compression. Throws data_error if the source is empty.
  tar_reader(std::unique_ptr<byte_source> source, block_pool& pool);
  tar_reader(std::unique_ptr<byte_source> source, block_pool& pool, options o);
  tar_reader(const tar_reader&) = delete;
  tar_reader& operator=(const tar_reader&) = delete;
  MILLRACE_RARE ~tar_reader() = default;

  /// Returns the next member, or nothing at a valid end. Skips the rest of the previous payload.
  std::optional<tar_member> next();

  /// Throws data_error if the shard ends inside the payload of the current member. Call this function before you
  /// allocate memory for the payload.
  void check_payload();

  /// Copies the payload of the current member into `buffer`, which must have the size of the payload. Call this
  /// function at most once per member.
  void read(std::span<std::byte> buffer);

  /// Returns the name of the source.
  std::string_view shard() const noexcept { return source_->name(); }
  /// Returns whether the shard is compressed.
  bool compressed() const noexcept { return stream_.compressed(); }
  /// Returns the offset of the end marker. Valid after next() has reached the end.
  std::uint64_t end_marker_at() const noexcept { return end_marker_at_; }

  /// Returns how many names (of members, links, users) libarchive could not convert to the locale's character set. The
  /// bytes of such names are returned unchanged.
  std::uint64_t unconverted_names() const noexcept { return unconverted_names_; }
  /// Returns whether the end marker was missing or incomplete. Valid after next() has reached the end.
  bool ended_without_marker() const noexcept { return ended_without_marker_; }
  /// Returns the name of the member for which next() failed, if its headers are intact.
  const std::optional<std::string>& certain_name() const noexcept { return certain_name_; }

 private:
  static constexpr std::uint64_t end_marker_bytes = 1024;
  static constexpr std::uint64_t max_padding_bytes = std::uint64_t{16} << 20;
  static constexpr std::size_t max_header_bytes = std::size_t{8} << 20;   // of one member, including extended headers

  void open();
  std::uint64_t stream_offset() const noexcept;

  /// Skips the rest of the current payload. Reads the payload of a sparse member instead of skipping it, because
  /// libarchive skips a wrong number of bytes if the map of holes is damaged.
  void skip_payload();

  /// Reads a header with libarchive. Saves the bytes of the header, because libarchive does not report some kinds of
  /// damage.
  int read_header(std::uint64_t at, struct ::archive_entry*& entry);
  /// Returns the bytes of the member's headers. If `result` is a failure, also returns all later bytes of the current
  /// chunk.
  std::string_view header_bytes(int result);
  std::string_view rest_of_chunk() const noexcept;
  /// Returns whether the rest of the stream consists of zeros and is shorter than a block. These zeros are part of the
  /// end marker.
  bool ends_in_zeros() const noexcept;
  tar_member describe(struct ::archive_entry* entry, const tar_header_chain& headers, std::uint64_t offset_bytes);

  /// Counts a warning about a name outside the locale's character set. Treats any other warning as damage.
  void check_warning(std::uint64_t offset_bytes);

  /// Reads the rest of the shard. Only zeros may follow the end marker. `marker_at` is an offset in the stream.
  void check_end(std::uint64_t marker_at);
  bool begins_with_header() const noexcept;

  /// Callbacks of libarchive. They store exceptions in stream_failure_, because exceptions must not propagate through C
  /// frames.
  static ::la_ssize_t read_chunk(struct ::archive*, void* self, const void** data) noexcept;
  static ::la_int64_t skip_bytes(struct ::archive*, void* self, ::la_int64_t count_bytes) noexcept;
  /// Throws data_error if the archive begins like a file of another kind.
  void check_kind(std::string_view front);

  [[noreturn]] void fail(std::string_view problem, std::uint64_t offset_bytes);
  /// Throws `failure`. If the compressed stream is damaged, throws the error of the stream instead. If the stream does
  /// not end within the next 64 MiB, throws `failure` as a late_data_error.
  [[noreturn]] void throw_damage(data_error failure);
  data_error damage(const std::string& problem, std::uint64_t offset_bytes,
                    std::string hint = "Copy, download or write the shard again") const;

  std::unique_ptr<byte_source> source_;
  std::uint64_t base_bytes_;   // offset in the shard at which the stream begins
  bool has_start_member_;      // true if source_ is a tail_source, which begins with an extra empty member
  bool strict_;
  shard_stream stream_;
  archive_reader handle_;
  std::exception_ptr stream_failure_;
  tar_member member_;
  bool member_has_holes_ = false;
  std::uint64_t unconverted_names_ = 0;
  std::uint64_t end_marker_at_ = 0;
  bool opened_ = false, ended_without_marker_ = false;
  std::optional<std::string> certain_name_;
  // libarchive currently reads chunk_. header_ contains the parts of the current headers that were in earlier chunks.
  std::span<const std::byte> chunk_;
  std::span<std::byte> place_;   // destination of read(); a plain stream reads the payload directly into it
  std::uint64_t chunk_at_ = 0, header_at_ = 0;
  std::string header_;
  bool in_header_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/tar_reader.inl>
#endif
