// Definitions for tar_reader.hpp.
#pragma once

#include <millrace/io/tar/read/tar_reader.hpp>

#include <millrace/io/file/foreign_file.hpp>
#include <millrace/io/tar/read/tail_source.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE tar_reader::tar_reader(std::unique_ptr<byte_source> source, block_pool& pool)
    : tar_reader(std::move(source), pool, options{}) {}

MILLRACE_RARE tar_reader::tar_reader(std::unique_ptr<byte_source> source, block_pool& pool, options o)
    : source_(o.start_bytes == 0 ? std::move(source)
                                 : std::unique_ptr<byte_source>(new tail_source(std::move(source), o.start_bytes))),
      base_bytes_(o.start_bytes == 0 ? 0 : o.start_bytes - tar_block_bytes),
      has_start_member_(o.start_bytes > 0),
      strict_(o.strict),
      stream_(*source_, pool, {.max_expansion = o.max_expansion}),
      handle_(open_archive_reader()) {
  ::archive_read_support_format_tar(handle_.get());
  // Treats members "._x" as ordinary members.
  ::archive_read_set_format_option(handle_.get(), "tar", "mac-ext", nullptr);
  ::archive_read_set_read_callback(handle_.get(), &tar_reader::read_chunk);
  ::archive_read_set_skip_callback(handle_.get(), &tar_reader::skip_bytes);
  ::archive_read_set_callback_data(handle_.get(), this);
}

MILLRACE_INLINE std::optional<tar_member> tar_reader::next() {
  if (!opened_) open();
  else skip_payload();
  // libarchive does not report a sparse member with a truncated payload, or with a map of holes that does not fit.
  if (stream_offset() % tar_block_bytes != 0)
    throw_damage(damage("has a payload that ends inside a block: expected padding up to a multiple of 512 bytes",
                        member_.offset_bytes));
  const std::uint64_t offset_bytes = stream_offset();
  struct ::archive_entry* entry = nullptr;
  const int result = read_header(offset_bytes - base_bytes_, entry);
  if (result == ARCHIVE_EOF || ends_in_zeros()) {
    end_marker_at_ = offset_bytes;
    check_end(offset_bytes - base_bytes_);
    return std::nullopt;
  }
  const std::string_view read = header_bytes(result);
  if (offset_bytes == 0 && result != ARCHIVE_OK && result != ARCHIVE_WARN) check_kind(read);
  const tar_header_chain headers(read);
  if (result != ARCHIVE_OK) certain_name_ = headers.certain_name();   // needed if the member is damaged
  if (result == ARCHIVE_WARN) check_warning(offset_bytes);
  else if (result != ARCHIVE_OK) fail("has a damaged or truncated member here, or is not a tar archive", offset_bytes);
  if (!headers.damage().empty()) throw_damage(damage(std::string(headers.damage()), offset_bytes));
  member_ = describe(entry, headers, offset_bytes);
  certain_name_.reset();
  return member_;
}

MILLRACE_RARE void tar_reader::check_kind(std::string_view front) {
  if (stream_failure_) return;
  if (const auto other = foreign_to_shards(front))
    throw_damage(damage("is not a tar archive: " + std::string(stream_.compressed() ? "after decompression, " : "") +
                            "it looks like " + other->name,
                        0, other->advice));
}

MILLRACE_INLINE void tar_reader::skip_payload() {
  if (member_.sparse) {
    const void* data = nullptr;
    std::size_t size_bytes = 0;
    ::la_int64_t offset_bytes = 0;
    int result = ARCHIVE_OK;
    while (result == ARCHIVE_OK) result = ::archive_read_data_block(handle_.get(), &data, &size_bytes, &offset_bytes);
    if (result != ARCHIVE_EOF) fail("has a damaged or truncated payload", member_.offset_bytes);
  }
  if (::archive_read_data_skip(handle_.get()) != ARCHIVE_OK) fail("has a truncated payload", member_.offset_bytes);
}

MILLRACE_INLINE void tar_reader::check_payload() {
  constexpr std::uint64_t small_bytes = std::uint64_t{1} << 20;
  if (member_.size_bytes <= small_bytes || member_.sparse) return;
  const std::uint64_t begin = member_.payload_offset_bytes - base_bytes_;
  if (member_.size_bytes <= ~begin && stream_.may_reach(begin + member_.size_bytes)) return;
  // If the stream ends soon, the size in the header is wrong. Otherwise the limit on the expansion is the reason.
  const data_error limit = stream_.too_expanded(begin + member_.size_bytes);
  if (!stream_.is_sound_to_its_end()) throw late_data_error(limit.message(), limit.where());
  throw damage("has a damaged or truncated payload: its " + std::to_string(member_.size_bytes) +
                   " bytes extend beyond the end of the file",
               member_.offset_bytes);
}

MILLRACE_INLINE void tar_reader::read(std::span<std::byte> buffer) {
  std::size_t filled = 0;
  for (;;) {
    const void* data = nullptr;
    std::size_t size_bytes = 0;
    ::la_int64_t offset_bytes = 0;
    if (!member_.sparse) place_ = buffer.subspan(filled);
    const int result = ::archive_read_data_block(handle_.get(), &data, &size_bytes, &offset_bytes);
    place_ = {};
    if (result == ARCHIVE_EOF) break;
    if (result != ARCHIVE_OK) fail("has a damaged or truncated payload", member_.offset_bytes);
    const auto at = static_cast<std::uint64_t>(offset_bytes);
    if (at < filled || at > buffer.size() || size_bytes > buffer.size() - at)
      throw_damage(
          damage("has a payload that does not match its declared size of " + std::to_string(buffer.size()) + " bytes",
                 member_.offset_bytes));
    std::memset(buffer.data() + filled, 0, at - filled);
    if (size_bytes > 0 && data != buffer.data() + at) std::memcpy(buffer.data() + at, data, size_bytes);
    filled = static_cast<std::size_t>(at) + size_bytes;
  }
  if (filled < buffer.size() && !member_has_holes_)
    throw_damage(damage("has a payload of the wrong size: got " + std::to_string(filled) + " bytes, expected " +
                            std::to_string(buffer.size()) + " according to the tar header",
                        member_.offset_bytes));
  std::memset(buffer.data() + filled, 0, buffer.size() - filled);
}

MILLRACE_RARE void tar_reader::open() {
  opened_ = true;
  in_header_ = true;   // read_chunk() then stores the bytes, even if they are too few for a header
  const int result = ::archive_read_open1(handle_.get());
  in_header_ = false;
  if (result != ARCHIVE_OK) {
    if (!has_start_member_) check_kind(header_ += rest_of_chunk());
    fail("is not a tar archive", 0);
  }
  struct ::archive_entry* start_member = nullptr;
  if (has_start_member_ && ::archive_read_next_header(handle_.get(), &start_member) != ARCHIVE_OK)
    fail("cannot be read from this offset", base_bytes_ + tar_block_bytes);
}

MILLRACE_INLINE std::uint64_t tar_reader::stream_offset() const noexcept {
  return base_bytes_ + static_cast<std::uint64_t>(::archive_filter_bytes(handle_.get(), 0));
}

MILLRACE_INLINE int tar_reader::read_header(std::uint64_t at, struct ::archive_entry*& entry) {
  header_at_ = at;
  header_.clear();
  in_header_ = true;
  const int result = ::archive_read_next_header(handle_.get(), &entry);
  in_header_ = false;
  return result;
}

MILLRACE_INLINE std::string_view tar_reader::header_bytes(int result) {
  std::string_view all = rest_of_chunk();
  if (!header_.empty()) all = header_ += all;
  const std::uint64_t size_bytes = stream_offset() - base_bytes_ - header_at_;
  return result == ARCHIVE_OK || result == ARCHIVE_WARN
             ? all.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, all.size())))
             : all;
}

MILLRACE_INLINE std::string_view tar_reader::rest_of_chunk() const noexcept {
  const std::uint64_t skipped = header_at_ > chunk_at_ ? header_at_ - chunk_at_ : 0;
  if (skipped >= chunk_.size()) return {};
  return {reinterpret_cast<const char*>(chunk_.data()) + skipped, chunk_.size() - static_cast<std::size_t>(skipped)};
}

MILLRACE_INLINE bool tar_reader::ends_in_zeros() const noexcept {
  return chunk_.empty() && !stream_failure_ && stream_.zeros_from_bytes() <= header_at_ &&
         stream_.end_bytes() > header_at_ && stream_.end_bytes() - header_at_ < tar_block_bytes;
}

MILLRACE_INLINE tar_member tar_reader::describe(struct ::archive_entry* entry, const tar_header_chain& headers,
                                                std::uint64_t offset_bytes) {
  const char* name = ::archive_entry_pathname(entry);
  if (!name) throw_damage(damage("has a member without a readable name", offset_bytes));
  tar_member member{.name = name, .offset_bytes = offset_bytes, .payload_offset_bytes = stream_offset()};
  member.regular = ::archive_entry_filetype(entry) == AE_IFREG && !::archive_entry_hardlink(entry);
  member_has_holes_ = ::archive_entry_sparse_count(entry) > 0;
  member.sparse = member_has_holes_ || headers.may_have_holes();
  const auto size_bytes = ::archive_entry_size(entry);
  if (size_bytes < 0) {
    certain_name_ = headers.certain_name();
    throw_damage(damage("has a member of negative size", offset_bytes));
  }
  member.size_bytes = static_cast<std::uint64_t>(size_bytes);
  if (member.regular && *name == '\0') throw_damage(damage("has a file without a name", offset_bytes));
  // GNU headers of sparse files store the real size in a field where star stores times. libarchive reads that field in
  // all files. This code restores the size of files that are not sparse.
  const std::string_view header = headers.main();
  if (!header.empty() && is_gnu_header(header) && header[156] != 'S' && header[483] != '\0')
    member.size_bytes = tar_size(header.substr(124, 12)).value_or(member.size_bytes);
  return member;
}

MILLRACE_RARE void tar_reader::check_warning(std::uint64_t offset_bytes) {
  if (archive_text(handle_.get()).find("can't be converted") == std::string::npos)
    fail("has a malformed header", offset_bytes);
  ++unconverted_names_;
}

MILLRACE_RARE void tar_reader::check_end(std::uint64_t marker_at) {
  do {
    if (stream_.zeros_from_bytes() > marker_at && begins_with_header())
      throw_damage(damage("has an extended header here, but no member after it", end_marker_at_));
    if (stream_.zeros_from_bytes() > marker_at)
      throw_damage(
          damage("has data after an end marker: expected zeros up to the end of the shard", end_marker_at_,
                 "If archives were concatenated, store them as separate shards; otherwise the shard is damaged: "
                 "copy, download or write it again"));
    if (stream_.end_bytes() > marker_at + end_marker_bytes + max_padding_bytes)
      throw_damage(
          damage("has more than 16 MiB of zeros after the end marker: an incomplete copy or download may be the cause",
                 end_marker_at_));
  } while (!stream_.next_chunk().empty());
  ended_without_marker_ = stream_.end_bytes() < marker_at + end_marker_bytes;
  if (ended_without_marker_ && strict_)
    throw damage("ends without an end marker: expected two blocks of 512 zeros", end_marker_at_,
                 "The program that wrote or copied it was interrupted, or omits the marker: write, copy or "
                 "download it again, or remove `.strict`");
}

MILLRACE_INLINE bool tar_reader::begins_with_header() const noexcept {
  const std::string_view begin = header_.empty() ? rest_of_chunk() : std::string_view(header_);
  return !begin.empty() && begin[0] != '\0';
}

MILLRACE_INLINE ::la_ssize_t tar_reader::read_chunk(struct ::archive*, void* self, const void** data) noexcept {
  auto& reader = *static_cast<tar_reader*>(self);
  try {
    if (reader.in_header_) reader.header_ += reader.rest_of_chunk();
    // libarchive stores the contents of headers. It does not always limit a chain of headers, or the map of a sparse
    // file.
    if (reader.header_.size() > max_header_bytes)
      throw reader.damage("has a member with more than 8 MiB of headers", reader.base_bytes_ + reader.header_at_);
    reader.chunk_at_ = reader.stream_.end_bytes();
    reader.chunk_ = {};
    reader.chunk_ = reader.stream_.next_chunk(reader.place_);
    *data = reader.chunk_.data();
    return static_cast<::la_ssize_t>(reader.chunk_.size());
  } catch (...) {
    reader.stream_failure_ = std::current_exception();
    return -1;
  }
}

MILLRACE_INLINE ::la_int64_t tar_reader::skip_bytes(struct ::archive*, void* self, ::la_int64_t count_bytes) noexcept {
  auto& reader = *static_cast<tar_reader*>(self);
  if (reader.in_header_) return 0;   // header bytes are examined, so they must not be skipped
  try {
    return static_cast<::la_int64_t>(reader.stream_.skip(static_cast<std::uint64_t>(count_bytes)));
  } catch (...) {
    return 0;   // the next read fails in the same way, and reports the reason
  }
}

MILLRACE_RARE void tar_reader::fail(std::string_view problem, std::uint64_t offset_bytes) {
  if (stream_failure_) std::rethrow_exception(stream_failure_);
  const std::string reason = archive_text(handle_.get());
  throw_damage(
      damage(std::string(problem) + (reason.empty() ? "" : " (libarchive: " + printable(reason) + ")"), offset_bytes));
}

MILLRACE_RARE void tar_reader::throw_damage(data_error failure) {
  if (!stream_.is_sound_to_its_end()) throw late_data_error(failure.message(), failure.where());
  throw failure;
}

MILLRACE_RARE data_error tar_reader::damage(const std::string& problem, std::uint64_t offset_bytes,
                                            std::string hint) const {
  return {"the shard " + problem,
          std::move(hint),
          {.stage = "tar", .shard = std::string(shard()), .key = {}, .offset_bytes = offset_bytes}};
}

}}}   // namespace millrace::detail
