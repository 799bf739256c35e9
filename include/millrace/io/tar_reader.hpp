// The members of a tar archive, one after the other, from a plain or compressed shard. Strict.
//
//   mr::tar_reader tar(std::make_unique<mr::file_source>("train-000.tar"), pool);
//   while (auto member = tar.next())
//     if (member->regular) { room.resize(member->size_bytes); tar.read(room); }
//
// Reads v7, ustar, GNU (long names, sparse, base-256 sizes) and pax. Payloads are copied once, holes become zeros.
// Strict means: the end marker (two blocks of zeros) must be there and only zeros, at most 16 MiB, may follow it. So a
// shard that was cut between two members, that has a hole of zeros, or that two archives were joined in is an error,
// which tar programs and libraries accept in silence. What cannot be seen: flipped bits in a payload; nor does
// libarchive 3.6 check gzip's own checksum. Of a compressed shard that is cut, up to one decompressed block (64 KiB
// for gzip) before the cut is lost.
// Errors: data_error with shard and offset (of the member's first header block, in the uncompressed stream); what the
// source throws. After an error the reader is of no further use. Threads: one at a time.
// Names are the raw bytes of the header, except that libarchive converts a pax name to the character set of the
// process's locale if that is neither "C" nor UTF-8.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/io/archive.hpp>
#include <millrace/io/byte_source.hpp>
#include <millrace/io/shard_stream.hpp>
#include <millrace/io/tail_source.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace::inline MILLRACE_ABI {

/// What the header of a member says.
struct tar_member {
  std::string_view name{};                  ///< valid until the next member
  std::uint64_t size_bytes = 0;             ///< of the payload, holes included
  std::uint64_t offset_bytes = 0;           ///< of the first header block in the uncompressed stream
  std::uint64_t payload_offset_bytes = 0;   ///< of the payload there, unless it is sparse
  bool regular = false;                     ///< a file; not a link, a folder or a device
  bool sparse = false;                      ///< it has holes, which the archive does not hold
};

/// A template only so that including it costs little.
template <class = void>
class basic_tar_reader {
 public:
  /// From `start_bytes` on, which is the offset of a member's first header block in a plain shard.
  basic_tar_reader(std::unique_ptr<byte_source> source, block_pool& pool, std::uint64_t start_bytes = 0)
      : source_(start_bytes == 0 ? std::move(source)
                                 : std::make_unique<detail::tail_source>(std::move(source), start_bytes)),
        base_bytes_(start_bytes == 0 ? 0 : start_bytes - detail::tar_block_bytes),
        stream_(*source_, pool),
        handle_(detail::open_archive_reader()) {
    ::archive_read_support_format_tar(handle_.get());
    ::archive_read_set_format_option(handle_.get(), "tar", "mac-ext", nullptr);   // "._x" is an ordinary member
    ::archive_read_set_read_callback(handle_.get(), &basic_tar_reader::give_chunk);
    ::archive_read_set_skip_callback(handle_.get(), &basic_tar_reader::pass_over);
    ::archive_read_set_callback_data(handle_.get(), this);
  }
  basic_tar_reader(const basic_tar_reader&) = delete;
  basic_tar_reader& operator=(const basic_tar_reader&) = delete;

  /// The next member, or nothing at a proper end. Whatever of the previous payload was not read is passed over.
  std::optional<tar_member> next() {
    if (!opened_) open();
    else if (::archive_read_data_skip(handle_.get()) != ARCHIVE_OK) fail("has a cut payload", member_.offset_bytes);
    const std::uint64_t offset_bytes = stream_offset();
    struct ::archive_entry* entry = nullptr;
    const int result = ::archive_read_next_header(handle_.get(), &entry);
    if (result == ARCHIVE_EOF) {
      end_marker_at_ = offset_bytes;
      check_end(offset_bytes - base_bytes_);
      return std::nullopt;
    }
    if (result == ARCHIVE_WARN) check_warning(offset_bytes);
    else if (result != ARCHIVE_OK) fail("has a damaged or cut member here, or is no tar archive", offset_bytes);
    member_ = describe(entry, offset_bytes);
    return member_;
  }

  /// Copies the payload of the last member; `room` has exactly its size. At most once per member.
  void read(std::span<std::byte> room) {
    std::size_t filled = 0;
    for (;;) {
      const void* data = nullptr;
      std::size_t size_bytes = 0;
      ::la_int64_t offset_bytes = 0;
      const int result = ::archive_read_data_block(handle_.get(), &data, &size_bytes, &offset_bytes);
      if (result == ARCHIVE_EOF) break;
      if (result != ARCHIVE_OK) fail("has a damaged or cut payload", member_.offset_bytes);
      const auto at = static_cast<std::uint64_t>(offset_bytes);
      if (at < filled || at > room.size() || size_bytes > room.size() - at)
        throw damage("has a payload that does not fit its own size of " + std::to_string(room.size()) + " bytes",
                     member_.offset_bytes);
      std::memset(room.data() + filled, 0, at - filled);
      if (size_bytes > 0) std::memcpy(room.data() + at, data, size_bytes);
      filled = static_cast<std::size_t>(at) + size_bytes;
    }
    if (filled < room.size() && !member_.sparse)
      throw damage("has a payload of " + std::to_string(filled) + " bytes where the header says " +
                       std::to_string(room.size()),
                   member_.offset_bytes);
    std::memset(room.data() + filled, 0, room.size() - filled);
  }

  std::string_view shard() const noexcept { return source_->name(); }
  bool compressed() const noexcept { return stream_.compressed(); }
  /// Where the end marker begins, once next() has met it.
  std::uint64_t end_marker_at() const noexcept { return end_marker_at_; }

  /// Names (of members, links, users) that libarchive could not convert to the locale's character set and left raw.
  std::uint64_t unconverted_names() const noexcept { return unconverted_names_; }

 private:
  static constexpr std::uint64_t end_marker_bytes = 1024;
  static constexpr std::uint64_t most_padding_bytes = std::uint64_t{16} << 20;

  void open() {
    opened_ = true;
    if (::archive_read_open1(handle_.get()) != ARCHIVE_OK) fail("is no tar archive", 0);
    struct ::archive_entry* stand_in = nullptr;
    if (base_bytes_ > 0 && ::archive_read_next_header(handle_.get(), &stand_in) != ARCHIVE_OK)
      fail("cannot be read from here", base_bytes_ + detail::tar_block_bytes);
  }

  std::uint64_t stream_offset() const noexcept {
    return base_bytes_ + static_cast<std::uint64_t>(::archive_filter_bytes(handle_.get(), 0));
  }

  tar_member describe(struct ::archive_entry* entry, std::uint64_t offset_bytes) {
    const char* name = ::archive_entry_pathname(entry);
    if (!name) throw damage("has a member without a readable name", offset_bytes);
    tar_member member{.name = name, .offset_bytes = offset_bytes, .payload_offset_bytes = stream_offset()};
    member.regular = ::archive_entry_filetype(entry) == AE_IFREG && !::archive_entry_hardlink(entry);
    member.sparse = ::archive_entry_sparse_count(entry) > 0;
    const auto size_bytes = ::archive_entry_size(entry);
    if (size_bytes < 0) throw damage("has a member of negative size", offset_bytes);
    member.size_bytes = static_cast<std::uint64_t>(size_bytes);
    return member;
  }

  /// A name outside the locale's character set is given raw, which is what we want; any other warning is damage.
  void check_warning(std::uint64_t offset_bytes) {
    if (detail::archive_text(handle_.get()).find("can't be converted") == std::string::npos)
      fail("has a malformed header", offset_bytes);
    ++unconverted_names_;
  }

  /// Reads the rest of the shard: from the end marker on there may be nothing but zeros. Offsets of the stream.
  void check_end(std::uint64_t marker_at) {
    do {
      if (stream_.zeros_from_bytes() > marker_at)
        throw damage("goes on after an end marker (expected: zeros up to its end)", end_marker_at_,
                     "If archives were joined, keep them as shards of their own; else the shard is damaged: copy, "
                     "download or write it again");
      if (stream_.end_bytes() > marker_at + end_marker_bytes + most_padding_bytes)
        throw damage("has more than 16 MiB of zeros after the end marker: a copy or download that never finished",
                     end_marker_at_);
    } while (!stream_.next_chunk().empty());
    if (stream_.end_bytes() < marker_at + end_marker_bytes)
      throw damage("ends without an end marker (expected: two blocks of 512 zeros)", end_marker_at_,
                   "The program that wrote or copied it was interrupted: write, copy or download it again");
  }

  /// Both are called by libarchive. Exceptions must not pass through its frames: they wait in stream_failure_.
  static ::la_ssize_t give_chunk(struct ::archive*, void* self, const void** data) noexcept {
    auto& reader = *static_cast<basic_tar_reader*>(self);
    try {
      const auto chunk = reader.stream_.next_chunk();
      *data = chunk.data();
      return static_cast<::la_ssize_t>(chunk.size());
    } catch (...) {
      reader.stream_failure_ = std::current_exception();
      return -1;
    }
  }
  static ::la_int64_t pass_over(struct ::archive*, void* self, ::la_int64_t count_bytes) noexcept {
    try {
      auto& stream = static_cast<basic_tar_reader*>(self)->stream_;
      return static_cast<::la_int64_t>(stream.skip(static_cast<std::uint64_t>(count_bytes)));
    } catch (...) {
      return 0;   // the read that follows fails in the same way, and says why
    }
  }

  [[noreturn]] void fail(std::string_view found, std::uint64_t offset_bytes) const {
    if (stream_failure_) std::rethrow_exception(stream_failure_);
    throw damage(std::string(found) + " (libarchive: " + printable(detail::archive_text(handle_.get())) + ")",
                 offset_bytes);
  }
  data_error damage(const std::string& found, std::uint64_t offset_bytes,
                    std::string hint = "Copy, download or write the shard again") const {
    return {"the shard " + found, std::move(hint),
            {.stage = "tar", .shard = std::string(shard()), .key = {}, .offset_bytes = offset_bytes}};
  }

  std::unique_ptr<byte_source> source_;
  std::uint64_t base_bytes_;   // of the shard, before the first byte of the stream
  detail::shard_stream stream_;
  detail::archive_reader handle_;
  std::exception_ptr stream_failure_;
  tar_member member_;
  std::uint64_t unconverted_names_ = 0;
  std::uint64_t end_marker_at_ = 0;
  bool opened_ = false;
};
using tar_reader = basic_tar_reader<>;

}  // namespace millrace::inline MILLRACE_ABI
