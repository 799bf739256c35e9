// Definitions for shard_stream.hpp.
#pragma once

#include <millrace/io/tar/read/shard_stream.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE shard_stream::shard_stream(byte_source& source, block_pool& pool, content c)
    : source_(&source), pool_(&pool), content_(c), block_(pool.take(chunk_bytes)) {
  if (c.max_expansion == 0)
    throw setup_error("max_expansion is out of range: got 0, expected at least 1", "Omit it for the default");
  auto start = read_source();
  if (start.empty() && !c.may_be_empty)
    throw data_error("the shard is empty: expected a tar archive, which has at least 1024 bytes",
                     "Copy or download it again", where(0));
  const compression* method = compression_of(start);
  if (!method) method = compression_after_skippable_frames(start);
  if (method) open_decompressor(*method);
  peeked_ = start;
}

MILLRACE_INLINE std::span<const std::byte> shard_stream::next_chunk(std::span<std::byte> place) {
  const bool direct = !compressed() && peeked_.empty() && place.size() >= worth_a_read_bytes && source_->reads_parts();
  const auto chunk = direct ? read_into(place) : gzip_ ? inflate() : decompressor_ ? decompress() : read_source();
  std::size_t used = chunk.size();
  while (used > 0 && chunk[used - 1] == std::byte{0}) --used;
  if (used > 0) zeros_from_bytes_ = end_bytes_ + used;
  end_bytes_ += chunk.size();
  if (compressed() && !may_reach(end_bytes_)) throw too_expanded(end_bytes_);
  return chunk;
}

MILLRACE_INLINE bool shard_stream::may_reach(std::uint64_t end_bytes) {
  if (compressed()) return end_bytes <= free_expansion_bytes || source_has(end_bytes / content_.max_expansion);
  return end_bytes == 0 || (end_bytes <= largest_offset && source_has_byte(end_bytes - 1));
}

MILLRACE_INLINE bool shard_stream::source_has_byte(std::uint64_t offset_bytes) {
  std::byte byte{};
  return source_->read_at(offset_bytes, {&byte, 1}) == 1;
}

MILLRACE_RARE data_error shard_stream::too_expanded(std::uint64_t end_bytes) const {
  return {"the " + std::string(method_name_) + " stream expands to more than " +
              std::to_string(content_.max_expansion) + " times its size (max_expansion): got " +
              std::to_string(end_bytes) + " bytes out of " + std::to_string(source_proven_bytes_),
          "Raise max_expansion if that size is correct; otherwise the file is a decompression bomb: omit it",
          where(end_bytes_)};
}

MILLRACE_INLINE bool shard_stream::source_has(std::uint64_t count_bytes) {
  source_proven_bytes_ = std::max(source_proven_bytes_, source_read_bytes_);
  if (count_bytes <= source_proven_bytes_) return true;
  if (count_bytes > largest_offset || source_size_proven_) return false;
  // Each query may be a request to a server. Therefore one query covers the expansion of a chunk.
  const std::uint64_t ahead_bytes = std::min(count_bytes + chunk_bytes, largest_offset);
  if (source_has_byte(ahead_bytes - 1)) {
    source_proven_bytes_ = ahead_bytes;
    return true;
  }
  for (std::uint64_t beyond = ahead_bytes; beyond - source_proven_bytes_ > 1;) {
    const std::uint64_t middle = source_proven_bytes_ + (beyond - source_proven_bytes_) / 2;
    (source_has_byte(middle - 1) ? source_proven_bytes_ : beyond) = middle;
  }
  source_size_proven_ = true;
  return count_bytes <= source_proven_bytes_;
}

MILLRACE_INLINE std::uint64_t shard_stream::skip(std::uint64_t count_bytes) {
  if (compressed() || !peeked_.empty() || count_bytes < chunk_bytes / 4) return 0;
  if (!source_has_byte(source_read_bytes_ + count_bytes - 1)) return 0;   // checks that the last skipped byte exists
  source_read_bytes_ += count_bytes;
  end_bytes_ += count_bytes;
  return count_bytes;
}

MILLRACE_INLINE bool shard_stream::is_sound_to_its_end() {
  constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20;
  if (!compressed()) return true;
  for (const std::uint64_t end = end_bytes_ + max_bytes; end_bytes_ < end;)
    if (next_chunk().empty()) return true;
  return false;
}

MILLRACE_RARE const shard_stream::compression* shard_stream::compression_of(std::span<const std::byte> start) noexcept {
  using namespace std::string_view_literals;
  static constexpr std::array<compression, 6> compressions{{
      {"gzip", "\x1f\x8b"sv, nullptr},
      {"bzip2", "BZh"sv, ::archive_read_support_filter_bzip2},
      {"xz",
       "\xfd"
       "7zXZ\0"sv,
       ::archive_read_support_filter_xz},
      {"zstd", "\x28\xb5\x2f\xfd"sv, ::archive_read_support_filter_zstd},
      {"lz4", "\x04\x22\x4d\x18"sv, ::archive_read_support_filter_lz4},
      {"lz4", "\x02\x21\x4c\x18"sv, ::archive_read_support_filter_lz4},
  }};
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  // The name of a tar member, or a text, may also begin with "BZh". Therefore the signatures of a tar header and of a
  // bzip2 block decide.
  if (text.size() >= 512 && text.substr(257, 5) == "ustar") return nullptr;
  const auto match = std::find_if(compressions.begin(), compressions.end(),
                                  [text](const compression& c) { return text.starts_with(c.magic); });
  if (match == compressions.end()) return nullptr;
  if (match->name == "bzip2" && text.size() >= 10 && text.substr(4, 6) != "1AY&SY" &&
      text.substr(4, 6) != "\x17\x72\x45\x38\x50\x90"sv)
    return nullptr;
  return &*match;
}

MILLRACE_RARE const shard_stream::compression* shard_stream::compression_after_skippable_frames(
    std::span<const std::byte>& start) {
  constexpr std::uint32_t any_mark = 0x184D2A50, mark_bits = 0xfffffff0;
  constexpr std::uint64_t head_bytes = 8;
  std::uint64_t begin = 0, at = 0;   // offsets in the source: of `rest`, and of the frame
  std::span<const std::byte> rest = start;
  for (;;) {
    if (at + 2 * head_bytes > begin + rest.size()) {
      if (at == 0) return nullptr;
      source_read_bytes_ = begin = at;
      rest = read_source();
    }
    const auto head = rest.subspan(static_cast<std::size_t>(at - begin));
    if (head.size() < head_bytes) break;
    const auto number = [head](std::size_t from) noexcept {
      std::uint32_t value = 0;
      for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(head[from + i]);
      return value;
    };
    if ((number(0) & mark_bits) != any_mark) {
      if (at == 0) return nullptr;
      const compression* const method = compression_of(head);
      if (!method || (method->name != "zstd" && method->name != "lz4")) break;
      start = head;
      skipped_bytes_ = at;
      return method;
    }
    at += head_bytes + number(4);
  }
  source_read_bytes_ = 0;   // the bytes only resembled a skippable frame
  start = read_source();
  return nullptr;
}

MILLRACE_RARE void shard_stream::open_decompressor(const compression& method) {
  method_name_ = method.name;
  if (!method.enable) {
    gzip_ = make_owner<gzip_inflater>();
    inflated_ = pool_->take(inflated_bytes);
    return;
  }
  decompressor_ = open_archive_reader();
  struct ::archive* const handle = decompressor_.get();
  // Any other result means that libarchive would run an external program.
  if (method.enable(handle) != ARCHIVE_OK)
    throw setup_error("this build of libarchive cannot read " + std::string(method.name) +
                          " without an external "
                          "program",
                      "Use a libarchive that includes this decompressor, or decompress the shards",
                      where(error_location::unknown));
  ::archive_read_support_format_raw(handle);
  ::archive_read_support_format_empty(handle);
  ::archive_read_set_read_callback(handle, &shard_stream::read_compressed);
  ::archive_read_set_callback_data(handle, this);
}

MILLRACE_INLINE std::span<const std::byte> shard_stream::read_source() {
  if (!peeked_.empty()) return std::exchange(peeked_, {});
  const std::span<std::byte> buffer(block_.get()->data(), read_bytes_);
  read_bytes_ = std::min(4 * read_bytes_, chunk_bytes);
  const auto filled = buffer.first(read_fully(*source_, source_read_bytes_, buffer));
  source_read_bytes_ += filled.size();
  return filled;
}

MILLRACE_INLINE std::span<const std::byte> shard_stream::read_into(std::span<std::byte> place) {
  const std::span<std::byte> lookahead(block_.get()->data(), lookahead_bytes);
  std::array parts{place, lookahead};
  const std::size_t filled = read_fully(*source_, source_read_bytes_, std::span<std::span<std::byte>>(parts));
  const std::size_t in_place = std::min(filled, place.size());
  source_read_bytes_ += filled;
  peeked_ = lookahead.first(filled - in_place);
  read_bytes_ = worth_a_read_bytes;
  return place.first(in_place);
}

MILLRACE_INLINE ::la_ssize_t shard_stream::read_compressed(struct ::archive*, void* self, const void** data) noexcept {
  auto& stream = *static_cast<shard_stream*>(self);
  try {
    const auto chunk = stream.read_source();
    *data = chunk.data();
    return static_cast<::la_ssize_t>(chunk.size());
  } catch (...) {
    stream.source_failure_ = std::current_exception();
    return -1;
  }
}

MILLRACE_INLINE std::span<const std::byte> shard_stream::inflate() {
  if (gzip_failure_) std::rethrow_exception(gzip_failure_);
  const std::span<std::byte> buffer(inflated_.get()->data(), inflated_bytes);
  std::size_t size = 0, sound = 0;
  while (!gzip_ended_ && !gzip_failure_ && size < buffer.size()) {
    if (compressed_.empty()) compressed_ = read_source();
    const bool cut = compressed_.empty();
    const gzip_step step = cut ? gzip_step{} : gzip_->inflate(compressed_, buffer.subspan(size));
    size += step.size;
    if (cut || step.outcome == gzip_step::member_end) sound = size;
    if (step.outcome == gzip_step::member_end) end_gzip_member();
    else if (cut) gzip_failure_ = exception_of(cut_short(end_bytes_ + size));
    else if (step.outcome == gzip_step::damaged) gzip_failure_ = exception_of(damage(gzip_->reason()));
  }
  if (gzip_failure_ && sound == 0) std::rethrow_exception(gzip_failure_);
  if (size == 0) check_tail(gzip_end_bytes_);
  return buffer.first(gzip_failure_ ? sound : size);
}

MILLRACE_INLINE void shard_stream::end_gzip_member() {
  if (compressed_.empty()) compressed_ = read_source();
  gzip_ended_ = compressed_.empty() || compressed_[0] != std::byte{0x1f};
  gzip_end_bytes_ = source_read_bytes_ - compressed_.size();
  if (!gzip_ended_) gzip_->begin_member();
}

MILLRACE_INLINE std::span<const std::byte> shard_stream::decompress() {
  struct ::archive* const handle = decompressor_.get();
  if (!opened_) {
    opened_ = true;
    struct ::archive_entry* ignored = nullptr;
    if (::archive_read_open1(handle) != ARCHIVE_OK) fail_to_decompress();
    const int result = ::archive_read_next_header(handle, &ignored);
    if (result == ARCHIVE_EOF) return {};
    if (result != ARCHIVE_OK) fail_to_decompress();
  }
  const void* data = nullptr;
  std::size_t size_bytes = 0;
  ::la_int64_t offset_bytes = 0;
  int result = ARCHIVE_OK;
  do result = ::archive_read_data_block(handle, &data, &size_bytes, &offset_bytes);
  while (result == ARCHIVE_OK && size_bytes == 0);
  if (result == ARCHIVE_EOF) {
    check_tail(skipped_bytes_ + static_cast<std::uint64_t>(::archive_filter_bytes(handle, -1)));
    return {};
  }
  if (result != ARCHIVE_OK) fail_to_decompress();
  return {static_cast<const std::byte*>(data), size_bytes};
}

MILLRACE_RARE void shard_stream::check_tail(std::uint64_t at) {
  for (source_read_bytes_ = at;; at = source_read_bytes_) {
    const auto tail = read_source();
    if (tail.empty()) return;
    if (std::any_of(tail.begin(), tail.end(), [](std::byte b) { return b != std::byte{0}; }))
      throw data_error("the " + std::string(method_name_) + " stream ends at byte " + std::to_string(at) +
                           " of the file, and bytes other than zeros follow it",
                       "Compress the shard again", where(end_bytes_));
  }
}

MILLRACE_RARE void shard_stream::fail_to_decompress() {
  if (source_failure_) std::rethrow_exception(source_failure_);
  const std::string reason = archive_text(decompressor_.get());
  throw damage(reason.empty() ? "or truncated" : "or truncated (libarchive: " + printable(reason) + ")");
}

MILLRACE_INLINE late_data_error shard_stream::cut_short(std::uint64_t at) const {
  return {"the gzip stream is truncated: its end is not in the file", where(at)};
}

MILLRACE_RARE late_data_error shard_stream::damage(const std::string& problem) const {
  return {"the " + std::string(method_name_) + " stream is damaged" + (gzip_ ? ": " : " ") + problem,
          where(end_bytes_)};
}

MILLRACE_INLINE error_location shard_stream::where(std::uint64_t offset_bytes) const {
  return {.stage = content_.stage, .shard = std::string(source_->name()), .key = {}, .offset_bytes = offset_bytes};
}

}}}   // namespace millrace::detail
