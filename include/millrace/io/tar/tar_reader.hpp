// The members of a tar archive, one after the other, from a plain or compressed shard. Strict.
//
//   mr::tar_reader tar(std::make_unique<mr::file_source>("train-000.tar"), pool);
//   while (auto member = tar.next())
//     if (member->regular) { room.resize(member->size_bytes); tar.read(room); }
//
// Reads v7, ustar, GNU (long names, sparse, base-256 sizes) and pax. Payloads are copied once, holes become zeros.
// Strict means: only zeros, at most 16 MiB, may follow the end marker (two blocks of zeros). So a shard that has a hole
// of zeros, or that two archives were joined in, is an error, which tar programs and libraries accept in silence. A
// shard that ends on a member's border without that marker, or with less than all of it, is whole, and
// ended_without_marker() says so; with options.strict it is an error. A cut anywhere inside a member, its header and
// what fills its last block included, always is one.
// What cannot be seen: flipped bits in a payload of a plain shard; in a compressed one they are an error at the end of
// the shard at the latest. Of a compressed shard that is cut, up to one block of its format before the cut is lost
// (none of gzip's).
// Errors: data_error with shard and offset (of the member's first header block, in the uncompressed stream);
// late_data_error for a damaged compressed stream; what the source throws. After an error the reader is of no further
// use. Threads: one at a time.
// Names are the raw bytes of the header, except that libarchive converts a pax name to the character set of the
// process's locale if that is neither "C" nor UTF-8.
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

namespace millrace { inline namespace MILLRACE_ABI {

/// What the header of a member says.
struct tar_member {
  std::string_view name{};                  ///< valid until the next member
  std::uint64_t size_bytes = 0;             ///< of the payload, holes included
  std::uint64_t offset_bytes = 0;           ///< of the first header block in the uncompressed stream
  std::uint64_t payload_offset_bytes = 0;   ///< of the payload there, unless it is sparse
  bool regular = false;                     ///< a file; not a link, a folder or a device
  bool sparse = false;                      ///< it has holes, which the archive does not hold
};

struct tar_reader_options {
  std::uint64_t start_bytes = 0;   ///< of a member's first header block in a plain shard, where to begin
  bool strict = false;             ///< a shard without an end marker is an error
};

/// A template only so that including it costs little.
template <class = void>
class basic_tar_reader {
 public:
  using options = tar_reader_options;

  basic_tar_reader(std::unique_ptr<byte_source> source, block_pool& pool)
      : basic_tar_reader(std::move(source), pool, options{}) {}
  basic_tar_reader(std::unique_ptr<byte_source> source, block_pool& pool, options o)
      : source_(o.start_bytes == 0 ? std::move(source)
                                   : std::make_unique<detail::tail_source>(std::move(source), o.start_bytes)),
        base_bytes_(o.start_bytes == 0 ? 0 : o.start_bytes - detail::tar_block_bytes),
        strict_(o.strict),
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
    const int result = read_header(offset_bytes - base_bytes_, entry);
    if (result == ARCHIVE_EOF || ends_in_zeros()) {
      end_marker_at_ = offset_bytes;
      check_end(offset_bytes - base_bytes_);
      return std::nullopt;
    }
    const detail::tar_header_chain headers(header_bytes(result));
    if (result != ARCHIVE_OK) certain_name_ = headers.certain_name();   // in case it is damage
    if (result == ARCHIVE_WARN) check_warning(offset_bytes);
    else if (result != ARCHIVE_OK) fail("has a damaged or cut member here, or is no tar archive", offset_bytes);
    if (!headers.damage().empty()) give_up(damage(std::string(headers.damage()), offset_bytes));
    member_ = describe(entry, headers, offset_bytes);
    certain_name_.reset();
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
        give_up(damage("has a payload that does not fit its own size of " + std::to_string(room.size()) + " bytes",
                       member_.offset_bytes));
      std::memset(room.data() + filled, 0, at - filled);
      if (size_bytes > 0) std::memcpy(room.data() + at, data, size_bytes);
      filled = static_cast<std::size_t>(at) + size_bytes;
    }
    if (filled < room.size() && !member_.sparse)
      give_up(damage("has a payload of " + std::to_string(filled) + " bytes where the header says " +
                         std::to_string(room.size()),
                     member_.offset_bytes));
    std::memset(room.data() + filled, 0, room.size() - filled);
  }

  std::string_view shard() const noexcept { return source_->name(); }
  bool compressed() const noexcept { return stream_.compressed(); }
  /// Where the end marker begins, once next() has met it.
  std::uint64_t end_marker_at() const noexcept { return end_marker_at_; }

  /// Names (of members, links, users) that libarchive could not convert to the locale's character set and left raw.
  std::uint64_t unconverted_names() const noexcept { return unconverted_names_; }
  /// After the end: the shard ended on a member's border, and its end marker was not there, or not all of it.
  bool ended_without_marker() const noexcept { return ended_without_marker_; }
  /// After next() has failed: the name of the member that it failed at, if its headers are sound.
  const std::optional<std::string>& certain_name() const noexcept { return certain_name_; }

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

  /// Header bytes are looked at beside libarchive, which says nothing of some kinds of damage.
  int read_header(std::uint64_t at, struct ::archive_entry*& entry) {
    header_at_ = at;
    kept_.clear();
    in_header_ = true;
    const int result = ::archive_read_next_header(handle_.get(), &entry);
    in_header_ = false;
    return result;
  }
  /// Of the member's headers, from the first on; after a failure whatever follows too.
  std::string_view header_bytes(int result) {
    constexpr std::size_t most_kept = std::size_t{8} << 20;
    std::string_view all = rest_of_chunk();
    if (!kept_.empty()) {
      if (kept_.size() > most_kept) return {};
      all = kept_ += all.substr(0, most_kept);
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
  /// Less than a block of zeros, which is a part of the end marker: no header begins so.
  bool ends_in_zeros() const noexcept {
    return chunk_.empty() && !stream_failure_ && stream_.zeros_from_bytes() <= header_at_ &&
           stream_.end_bytes() > header_at_ && stream_.end_bytes() - header_at_ < detail::tar_block_bytes;
  }

  tar_member describe(struct ::archive_entry* entry, const detail::tar_header_chain& headers,
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
    // Where GNU's sparse files have their real size, libarchive looks for one in all files; star has times there.
    const std::string_view header = headers.main();
    if (!header.empty() && detail::is_gnu_header(header) && header[156] != 'S' && header[483] != '\0')
      member.size_bytes = detail::tar_size(header.substr(124, 12)).value_or(member.size_bytes);
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
      if (stream_.zeros_from_bytes() > marker_at && begins_with_header())
        give_up(damage("has the extended header of a member here, and no member behind it", end_marker_at_));
      if (stream_.zeros_from_bytes() > marker_at)
        give_up(damage("goes on after an end marker (expected: zeros up to its end)", end_marker_at_,
                       "If archives were joined, keep them as shards of their own; else the shard is damaged: copy, "
                       "download or write it again"));
      if (stream_.end_bytes() > marker_at + end_marker_bytes + most_padding_bytes)
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

  /// Both are called by libarchive. Exceptions must not pass through its frames: they wait in stream_failure_.
  static ::la_ssize_t give_chunk(struct ::archive*, void* self, const void** data) noexcept {
    auto& reader = *static_cast<basic_tar_reader*>(self);
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
    auto& reader = *static_cast<basic_tar_reader*>(self);
    if (reader.in_header_) return 0;   // all of it is looked at
    try {
      return static_cast<::la_int64_t>(reader.stream_.skip(static_cast<std::uint64_t>(count_bytes)));
    } catch (...) {
      return 0;   // the read that follows fails in the same way, and says why
    }
  }

  [[noreturn]] void fail(std::string_view found, std::uint64_t offset_bytes) {
    if (stream_failure_) std::rethrow_exception(stream_failure_);
    const std::string reason = detail::archive_text(handle_.get());
    give_up(damage(std::string(found) + (reason.empty() ? "" : " (libarchive: " + printable(reason) + ")"),
                   offset_bytes));
  }
  /// Damage of a compressed stream makes an archive look damaged too, and is what to tell then.
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
  std::uint64_t base_bytes_;   // of the shard, before the first byte of the stream
  bool strict_;
  detail::shard_stream stream_;
  detail::archive_reader handle_;
  std::exception_ptr stream_failure_;
  tar_member member_;
  std::uint64_t unconverted_names_ = 0;
  std::uint64_t end_marker_at_ = 0;
  bool opened_ = false, ended_without_marker_ = false;
  std::optional<std::string> certain_name_;
  // The chunk that libarchive has, and of the headers that it reads now what lay in the chunks before. In the stream.
  std::span<const std::byte> chunk_;
  std::uint64_t chunk_at_ = 0, header_at_ = 0;
  std::string kept_;
  bool in_header_ = false;
};
using tar_reader = basic_tar_reader<>;

}}  // namespace millrace
