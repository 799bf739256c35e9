// Definitions for cache_block.hpp.
#pragma once

#include <millrace/io/cache/cache_block.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The head of a file has ten numbers of eight bytes, followed by name, version and checksums. The numbers are: magic,
// bytes of the head, CRC of all bytes after this number, number, block_bytes, chunk_bytes, data_bytes, and the sizes of
// the object, of its name and of its version.
inline constexpr std::uint64_t cache_block_magic = 0x31'6b'62'65'63'61'72'6d;   // "mracebk1"
inline constexpr std::size_t cache_head_numbers = 10, cache_head_checked_from = 3 * 8, cache_page_bytes = 4096;
inline constexpr std::uint64_t max_cache_head_bytes = std::uint64_t{1} << 20;

/// Fills `into` from a file. Returns false if a read fails or the file ends early.
MILLRACE_INLINE bool read_exactly(int file, std::uint64_t offset_bytes, std::span<std::byte> into) noexcept {
  while (!into.empty()) {
    const ssize_t got = posix_files::read_at(file, into.data(), into.size(), static_cast<off_t>(offset_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset_bytes += static_cast<std::uint64_t>(got);
  }
  return true;
}

MILLRACE_INLINE std::string bytes_of_head(const cache_block_head& head) {
  const std::string& name = head.object.name;
  const std::string& version = head.object.identity.version;
  std::size_t bytes = cache_head_numbers * 8 + name.size() + version.size() + head.checksums.size() * 4;
  bytes = (bytes + cache_page_bytes - 1) / cache_page_bytes * cache_page_bytes;
  std::uint64_t numbers[cache_head_numbers] = {cache_block_magic,
                                               bytes,
                                               0,
                                               head.number,
                                               head.block_bytes,
                                               head.chunk_bytes,
                                               head.data_bytes,
                                               head.object.identity.size_bytes,
                                               name.size(),
                                               version.size()};
  std::string text(bytes, '\0');
  char* at = text.data() + sizeof numbers;
  std::memcpy(text.data(), numbers, sizeof numbers);
  std::memcpy(at, name.data(), name.size());
  std::memcpy(at += name.size(), version.data(), version.size());
  std::memcpy(at + version.size(), head.checksums.data(), head.checksums.size() * 4);
  numbers[2] = crc32c(bytes_of(text).subspan(cache_head_checked_from));
  std::memcpy(text.data(), numbers, sizeof numbers);
  return text;
}

MILLRACE_INLINE std::vector<std::uint32_t> cached_chunk_checksums(std::span<const std::byte> data,
                                                                  std::uint64_t chunk_bytes) {
  std::vector<std::uint32_t> checksums;
  for (; !data.empty(); data = data.subspan(std::min<std::size_t>(data.size(), chunk_bytes)))
    checksums.push_back(crc32c(data.first(std::min<std::size_t>(data.size(), chunk_bytes))));
  return checksums;
}

/// Returns the head of a file. Returns nothing if the head is damaged, or the size of the file does not match the head.
MILLRACE_INLINE std::optional<cache_block_head> cached_file_head(int file, std::uint64_t& data_at) {
  std::uint64_t numbers[cache_head_numbers];
  struct ::stat status{};
  if (posix_files::stat_open(file, status) != 0 || !read_exactly(file, 0, std::as_writable_bytes(std::span(numbers))) ||
      numbers[0] != cache_block_magic)
    return std::nullopt;
  const std::uint64_t bytes = numbers[1], chunk_bytes = numbers[5], data_bytes = numbers[6];
  const std::uint64_t name = numbers[8], version = numbers[9];
  if (bytes < sizeof numbers || bytes > max_cache_head_bytes) return std::nullopt;
  std::string text(bytes, '\0');
  if (!read_exactly(file, 0, std::as_writable_bytes(std::span(text))) ||
      crc32c(bytes_of(text).subspan(cache_head_checked_from)) != numbers[2])
    return std::nullopt;
  // If the checksum is right, these numbers are valid. The comparisons only ensure that reads stay within the file.
  const std::uint64_t chunks = chunk_bytes == 0 ? 0 : (data_bytes + chunk_bytes - 1) / chunk_bytes;
  if (chunks == 0 || name > bytes || version > bytes || chunks > bytes ||
      sizeof numbers + name + version + chunks * 4 > bytes ||
      static_cast<std::uint64_t>(status.st_size) != bytes + data_bytes)
    return std::nullopt;
  cache_block_head head{
      .object = {.name = text.substr(sizeof numbers, name),
                 .identity = {.size_bytes = numbers[7], .version = text.substr(sizeof numbers + name, version)}},
      .number = numbers[3],
      .block_bytes = numbers[4],
      .chunk_bytes = chunk_bytes,
      .data_bytes = data_bytes,
      .checksums = std::vector<std::uint32_t>(chunks)};
  std::memcpy(head.checksums.data(), text.data() + sizeof numbers + name + version, chunks * 4);
  data_at = bytes;
  return head;
}

MILLRACE_INLINE cache_block::cache_block(unique_fd file) : file_(std::move(file)) {
  if (file_) head_ = cached_file_head(file_.get(), data_at_);
}

MILLRACE_INLINE bool cache_block::belongs_to(const cached_object& object, std::uint64_t number,
                                             const cache_layout& layout) const noexcept {
  return head_ && head_->number == number && head_->block_bytes == layout.block_bytes && head_->object == object &&
         head_->data_bytes == std::min(layout.block_bytes, object.identity.size_bytes - number * layout.block_bytes);
}

MILLRACE_INLINE std::size_t cache_block::bytes_of_chunk(std::uint64_t chunk) const noexcept {
  return std::min(head_->chunk_bytes, head_->data_bytes - chunk * head_->chunk_bytes);
}

MILLRACE_INLINE bool cache_block::read_chunks(std::uint64_t first, std::span<std::byte> into) const noexcept {
  if (!read_exactly(file_.get(), data_at_ + first * head_->chunk_bytes, into)) return false;
  for (std::uint64_t chunk = first; !into.empty(); ++chunk) {
    const std::size_t bytes = bytes_of_chunk(chunk);
    if (crc32c(into.first(bytes)) != head_->checksums[chunk]) return false;
    into = into.subspan(bytes);
  }
  return true;
}

MILLRACE_INLINE bool cache_block::load_chunk(std::uint64_t chunk) {
  if (chunk_number_ == chunk) return true;
  chunk_number_ = ~std::uint64_t{0};
  chunk_.resize(bytes_of_chunk(chunk));
  if (!read_chunks(chunk, chunk_)) return false;
  chunk_number_ = chunk;
  return true;
}

MILLRACE_INLINE std::optional<std::size_t> cache_block::read_at(std::uint64_t offset_bytes,
                                                                std::span<std::byte> buffer) {
  const std::uint64_t chunk_bytes = head_->chunk_bytes;
  buffer = buffer.first(std::min<std::uint64_t>(buffer.size(), head_->data_bytes - offset_bytes));
  for (std::span<std::byte> left = buffer; !left.empty();) {
    const std::uint64_t chunk = offset_bytes / chunk_bytes, skip = offset_bytes % chunk_bytes;
    std::size_t bytes = 0;
    if (skip == 0) {   // complete chunks are read directly into the buffer
      bytes = left.size() / chunk_bytes * chunk_bytes;
      if (left.size() == head_->data_bytes - offset_bytes) bytes = left.size();
    }
    if (bytes > 0) {
      if (!read_chunks(chunk, left.first(bytes))) return std::nullopt;
    } else {
      if (!load_chunk(chunk)) return std::nullopt;
      bytes = std::min<std::size_t>(left.size(), chunk_.size() - skip);
      std::memcpy(left.data(), chunk_.data() + skip, bytes);
    }
    left = left.subspan(bytes);
    offset_bytes += bytes;
  }
  return buffer.size();
}

MILLRACE_INLINE bool cache_block::check_all() {
  for (std::uint64_t chunk = 0; chunk < head_->checksums.size(); ++chunk)
    if (!load_chunk(chunk)) return false;
  return true;
}

MILLRACE_INLINE cache_block open_cache_block(const std::string& path) {
  unique_fd file(posix_files::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  // A failure to lock is harmless: another thread is removing the file, but an open file stays readable.
  if (file) ::flock(file.get(), LOCK_SH | LOCK_NB);
  return cache_block(std::move(file));
}

}}}   // namespace millrace::detail
