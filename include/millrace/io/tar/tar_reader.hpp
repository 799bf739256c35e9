// Reads the members of a tar archive in order, from a plain or compressed shard, and checks that the shard is whole.
//
//   mr::detail::tar_reader tar(std::make_unique<mr::file_source>("train-000.tar"), pool);
//   while (auto member = tar.next())
//     if (member->regular) { buffer.resize(member->size_bytes); tar.read(buffer); }
//
// Formats: v7, ustar, GNU (long names, sparse, base-256 sizes), pax. Each payload is copied once; holes become zeros.
// Only zeros, at most 16 MiB, may follow the end marker (two blocks of 512 zeros). A shard with a hole of zeros is
// therefore an error, and so are two joined archives. Other tar programs and libraries accept both silently.
// A shard may end between two members with no end marker or only a part of it. Such a shard is whole, and
// ended_without_marker() returns true; with options.strict it is an error. A cut inside a member is always an error.
// The member includes its header and the padding of its last block.
// Not detected: flipped bits in a payload of a plain shard. In a compressed shard they are an error at the end of the
// shard at the latest. A cut compressed shard loses up to one block of its format before the cut; gzip loses nothing.
// Errors: data_error with the shard and the offset of the member's first header block in the uncompressed stream.
// late_data_error for a damaged compressed stream. Errors of the source pass through. The reader is unusable after an
// error.
// Threads: one at a time.
// Names are the raw bytes of the header, with one exception. If the process's locale is neither "C" nor UTF-8,
// libarchive converts pax names to the locale's character set.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/archive.hpp>
#include <millrace/io/tar/shard_stream.hpp>
#include <millrace/io/tar/tail_source.hpp>
#include <millrace/io/tar/tar_fields.hpp>
#include <millrace/item/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The header of a member.
struct tar_member {
  std::string_view name{};                  ///< valid until the next member
  std::uint64_t size_bytes = 0;             ///< size of the payload, holes included
  std::uint64_t offset_bytes = 0;           ///< first header block, in the uncompressed stream
  std::uint64_t payload_offset_bytes = 0;   ///< payload in that stream; meaningless if the member is sparse
  bool regular = false;                     ///< true for a file; false for a link, a folder or a device
  bool sparse = false;                      ///< true if it has holes, which the archive does not store
};

/// Options of tar_reader.
struct tar_reader_options {
  std::uint64_t start_bytes = 0;   ///< where to begin: a member's first header block in a plain shard
  bool strict = false;             ///< makes a shard without an end marker an error
};

/// The members of one archive.
class tar_reader {
 public:
  using options = tar_reader_options;

  /// Opens the archive and determines its compression. Throws data_error if the source is empty.
  tar_reader(std::unique_ptr<byte_source> source, block_pool& pool)
      : tar_reader(std::move(source), pool, options{}) {}
  tar_reader(std::unique_ptr<byte_source> source, block_pool& pool, options o)
      : source_(o.start_bytes == 0 ? std::move(source)
                                   : std::make_unique<detail::tail_source>(std::move(source), o.start_bytes)),
        base_bytes_(o.start_bytes == 0 ? 0 : o.start_bytes - tar_block_bytes),
        strict_(o.strict),
        stream_(*source_, pool),
        handle_(detail::open_archive_reader()) {
    ::archive_read_support_format_tar(handle_.get());
    ::archive_read_set_format_option(handle_.get(), "tar", "mac-ext", nullptr);   // treats "._x" as an ordinary member
    ::archive_read_set_read_callback(handle_.get(), &tar_reader::give_chunk);
    ::archive_read_set_skip_callback(handle_.get(), &tar_reader::pass_over);
    ::archive_read_set_callback_data(handle_.get(), this);
  }
  tar_reader(const tar_reader&) = delete;
  tar_reader& operator=(const tar_reader&) = delete;

  /// Returns the next member, or nothing at a proper end. Skips the rest of the previous payload.
  std::optional<tar_member> next() {
    if (!opened_) open();
    else if (::archive_read_data_skip(handle_.get()) != ARCHIVE_OK) fail("has a cut payload", member_.offset_bytes);
    const std::uint64_t offset_bytes = stream_offset();
    struct ::archive_entry* entry = nullptr;
    const int result = read_header(offset_bytes - base_bytes_, entry);
    if (result == ARCHIVE_EOF || ends_in_zeros()) {
      end_marker_at_ = offset_bytes;
      check_end(offset_bytes - base_bytes_);
      return std::nullopt;
    }
    const tar_header_chain headers(header_bytes(result));
    if (result != ARCHIVE_OK) certain_name_ = headers.certain_name();   // needed if the result is damage
    if (result == ARCHIVE_WARN) check_warning(offset_bytes);
    else if (result != ARCHIVE_OK) fail("has a damaged or cut member here, or is not a tar archive", offset_bytes);
    if (!headers.damage().empty()) give_up(damage(std::string(headers.damage()), offset_bytes));
    member_ = describe(entry, headers, offset_bytes);
    certain_name_.reset();
    return member_;
  }

  /// Copies the payload of the last member into `buffer`, which has exactly the payload's size. Call it at most once
  /// per member.
  void read(std::span<std::byte> buffer) {
    std::size_t filled = 0;
    for (;;) {
      const void* data = nullptr;
      std::size_t size_bytes = 0;
      ::la_int64_t offset_bytes = 0;
      const int result = ::archive_read_data_block(handle_.get(), &data, &size_bytes, &offset_bytes);
      if (result == ARCHIVE_EOF) break;
      if (result != ARCHIVE_OK) fail("has a damaged or cut payload", member_.offset_bytes);
      const auto at = static_cast<std::uint64_t>(offset_bytes);
      if (at < filled || at > buffer.size() || size_bytes > buffer.size() - at)
        give_up(damage("has a payload that does not fit its own size of " + std::to_string(buffer.size()) + " bytes",
                       member_.offset_bytes));
      std::memset(buffer.data() + filled, 0, at - filled);
      if (size_bytes > 0) std::memcpy(buffer.data() + at, data, size_bytes);
      filled = static_cast<std::size_t>(at) + size_bytes;
    }
    if (filled < buffer.size() && !member_.sparse)
      give_up(damage("has a payload of " + std::to_string(filled) + " bytes where the header says " +
                         std::to_string(buffer.size()),
                     member_.offset_bytes));
    std::memset(buffer.data() + filled, 0, buffer.size() - filled);
  }

  /// Returns the name of the source.
  std::string_view shard() const noexcept { return source_->name(); }
  /// Returns whether the shard is compressed.
  bool compressed() const noexcept { return stream_.compressed(); }
  /// Returns the offset of the end marker, once next() has met it.
  std::uint64_t end_marker_at() const noexcept { return end_marker_at_; }

  /// Returns how many names (of members, links, users) libarchive left raw: it could not convert them to the locale's
  /// character set.
  std::uint64_t unconverted_names() const noexcept { return unconverted_names_; }
  /// Returns, after the end, whether the end marker was missing or incomplete.
  bool ended_without_marker() const noexcept { return ended_without_marker_; }
  /// Returns, after next() has failed, the name of the member that it failed at, if its headers are sound.
  const std::optional<std::string>& certain_name() const noexcept { return certain_name_; }

 private:
  static constexpr std::uint64_t end_marker_bytes = 1024;
  static constexpr std::uint64_t max_padding_bytes = std::uint64_t{16} << 20;

  void open() {
    opened_ = true;
    if (::archive_read_open1(handle_.get()) != ARCHIVE_OK) fail("is not a tar archive", 0);
    struct ::archive_entry* stand_in = nullptr;
    if (base_bytes_ > 0 && ::archive_read_next_header(handle_.get(), &stand_in) != ARCHIVE_OK)
      fail("cannot be read from here", base_bytes_ + detail::tar_block_bytes);
  }

  std::uint64_t stream_offset() const noexcept {
    return base_bytes_ + static_cast<std::uint64_t>(::archive_filter_bytes(handle_.get(), 0));
  }

  /// Reads a header by libarchive and keeps its bytes: libarchive does not report some kinds of damage.
  int read_header(std::uint64_t at, struct ::archive_entry*& entry) {
    header_at_ = at;
    kept_.clear();
    in_header_ = true;
    const int result = ::archive_read_next_header(handle_.get(), &entry);
    in_header_ = false;
    return result;
  }
  /// Returns the bytes of the member's headers, from the first on; after a failure also the bytes behind them.
  std::string_view header_bytes(int result) {
    constexpr std::size_t max_kept = std::size_t{8} << 20;
    std::string_view all = rest_of_chunk();
    if (!kept_.empty()) {
      if (kept_.size() > max_kept) return {};
      all = kept_ += all.substr(0, max_kept);
    }
    const std::uint64_t size_bytes = stream_offset() - base_bytes_ - header_at_;
    return result == ARCHIVE_OK || result == ARCHIVE_WARN
               ? all.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, all.size()))) : all;
  }
  std::string_view rest_of_chunk() const noexcept {
    const std::uint64_t passed = header_at_ > chunk_at_ ? header_at_ - chunk_at_ : 0;
    if (passed >= chunk_.size()) return {};
    return {reinterpret_cast<const char*>(chunk_.data()) + passed, chunk_.size() - static_cast<std::size_t>(passed)};
  }
  /// Returns whether the stream ends in less than a block of zeros. They are a part of the end marker, since no header
  /// begins with zeros.
  bool ends_in_zeros() const noexcept {
    return chunk_.empty() && !stream_failure_ && stream_.zeros_from_bytes() <= header_at_ &&
           stream_.end_bytes() > header_at_ && stream_.end_bytes() - header_at_ < tar_block_bytes;
  }

  tar_member describe(struct ::archive_entry* entry, const tar_header_chain& headers,
                      std::uint64_t offset_bytes) {
    const char* name = ::archive_entry_pathname(entry);
    if (!name) give_up(damage("has a member without a readable name", offset_bytes));
    tar_member member{.name = name, .offset_bytes = offset_bytes, .payload_offset_bytes = stream_offset()};
    member.regular = ::archive_entry_filetype(entry) == AE_IFREG && !::archive_entry_hardlink(entry);
    member.sparse = ::archive_entry_sparse_count(entry) > 0;
    const auto size_bytes = ::archive_entry_size(entry);
    if (size_bytes < 0) {
      certain_name_ = headers.certain_name();
      give_up(damage("has a member of negative size", offset_bytes));
    }
    member.size_bytes = static_cast<std::uint64_t>(size_bytes);
    if (member.regular && *name == '\0') give_up(damage("has a file without a name", offset_bytes));
    // GNU headers of sparse files store the real size in a field where star stores times. libarchive reads that field
    // in all files. This line restores the size of the files that are not sparse.
    const std::string_view header = headers.main();
    if (!header.empty() && detail::is_gnu_header(header) && header[156] != 'S' && header[483] != '\0')
      member.size_bytes = detail::tar_size(header.substr(124, 12)).value_or(member.size_bytes);
    return member;
  }

  /// Counts a name outside the locale's character set: libarchive returns it raw, as intended. Any other warning is
  /// damage.
  void check_warning(std::uint64_t offset_bytes) {
    if (detail::archive_text(handle_.get()).find("can't be converted") == std::string::npos)
      fail("has a malformed header", offset_bytes);
    ++unconverted_names_;
  }

  /// Reads the rest of the shard; only zeros may follow from the end marker on. `marker_at` is an offset in the stream.
  void check_end(std::uint64_t marker_at) {
    do {
      if (stream_.zeros_from_bytes() > marker_at && begins_with_header())
        give_up(damage("has the extended header of a member here, and no member behind it", end_marker_at_));
      if (stream_.zeros_from_bytes() > marker_at)
        give_up(damage("goes on after an end marker (expected: zeros up to its end)", end_marker_at_,
                       "If archives were joined, keep them as shards of their own; else the shard is damaged: copy, "
                       "download or write it again"));
      if (stream_.end_bytes() > marker_at + end_marker_bytes + max_padding_bytes)
        give_up(damage("has more than 16 MiB of zeros after the end marker: a copy or download that never finished",
                       end_marker_at_));
    } while (!stream_.next_chunk().empty());
    ended_without_marker_ = stream_.end_bytes() < marker_at + end_marker_bytes;
    if (ended_without_marker_ && strict_)
      throw damage("ends without an end marker (expected: two blocks of 512 zeros)", end_marker_at_,
                   "The program that wrote or copied it was interrupted, or leaves the marker out: write, copy or "
                   "download it again, or do without `.strict`");
  }
  bool begins_with_header() const noexcept {
    const std::string_view begin = kept_.empty() ? rest_of_chunk() : std::string_view(kept_);
    return !begin.empty() && begin[0] != '\0';
  }

  /// give_chunk() and pass_over() are callbacks of libarchive. Exceptions must not pass through its C frames, so
  /// stream_failure_ keeps them.
  static ::la_ssize_t give_chunk(struct ::archive*, void* self, const void** data) noexcept {
    auto& reader = *static_cast<tar_reader*>(self);
    try {
      if (reader.in_header_) reader.kept_ += reader.rest_of_chunk();
      reader.chunk_at_ = reader.stream_.end_bytes();
      reader.chunk_ = {};
      reader.chunk_ = reader.stream_.next_chunk();
      *data = reader.chunk_.data();
      return static_cast<::la_ssize_t>(reader.chunk_.size());
    } catch (...) {
      reader.stream_failure_ = std::current_exception();
      return -1;
    }
  }
  static ::la_int64_t pass_over(struct ::archive*, void* self, ::la_int64_t count_bytes) noexcept {
    auto& reader = *static_cast<tar_reader*>(self);
    if (reader.in_header_) return 0;   // header bytes are examined, so none are skipped
    try {
      return static_cast<::la_int64_t>(reader.stream_.skip(static_cast<std::uint64_t>(count_bytes)));
    } catch (...) {
      return 0;   // the next read fails in the same way and reports the reason
    }
  }

  [[noreturn]] void fail(std::string_view found, std::uint64_t offset_bytes) {
    if (stream_failure_) std::rethrow_exception(stream_failure_);
    const std::string reason = detail::archive_text(handle_.get());
    give_up(damage(std::string(found) + (reason.empty() ? "" : " (libarchive: " + printable(reason) + ")"),
                   offset_bytes));
  }
  /// Throws `found`, unless the compressed stream is damaged: that makes the archive look damaged too, and is the error
  /// to report. Throws late_data_error if the end of the stream is too far away to know.
  [[noreturn]] void give_up(data_error found) {
    if (!stream_.is_sound_to_its_end()) throw late_data_error(found.message(), found.where());
    throw found;
  }
  data_error damage(const std::string& found, std::uint64_t offset_bytes,
                    std::string hint = "Copy, download or write the shard again") const {
    return {"the shard " + found, std::move(hint),
            {.stage = "tar", .shard = std::string(shard()), .key = {}, .offset_bytes = offset_bytes}};
  }

  std::unique_ptr<byte_source> source_;
  std::uint64_t base_bytes_;   // offset in the shard of the first byte of the stream
  bool strict_;
  detail::shard_stream stream_;
  archive_reader handle_;
  std::exception_ptr stream_failure_;
  tar_member member_;
  std::uint64_t unconverted_names_ = 0;
  std::uint64_t end_marker_at_ = 0;
  bool opened_ = false, ended_without_marker_ = false;
  std::optional<std::string> certain_name_;
  // chunk_ is the chunk that libarchive has. kept_ holds the part of the current headers from earlier chunks. chunk_at_
  // and header_at_ are offsets in the stream.
  std::span<const std::byte> chunk_;
  std::uint64_t chunk_at_ = 0, header_at_ = 0;
  std::string kept_;
  bool in_header_ = false;
};

}}}  // namespace millrace::detail
