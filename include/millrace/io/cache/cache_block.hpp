// cache_block: one file of a cache on a local disk. The cache contains parts of objects. An object is a file of a
// remote storage. Each file of the cache contains one block (8 MiB) of one object, the checksums of the block, and the
// name and version of the object.
//
//   mr::detail::cache_block block = mr::detail::open_cache_block(path);
//   if (!block.belongs_to(object, 7, layout)) return;                     // another block, or a damaged head
//   const auto got = block.read_at(offset_in_block, buffer);      // returns nothing if a checksum is wrong
//
// A file consists of a head, zeros up to a multiple of 4 KiB, and the data. The head contains its own CRC-32C, and a
// CRC-32C for each chunk (64 KiB) of data. Each read verifies the checksums of its chunks. Therefore damaged data is
// never returned. The numbers in the head have the byte order of the machine.
// Errors: none; an unreadable block counts as damaged. Threads: one thread at a time per open block.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/io/file/unique_fd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The sizes of blocks and chunks. Only tests change them.
struct cache_layout {
  std::uint64_t block_bytes = std::uint64_t{8} << 20;
  std::uint64_t chunk_bytes = std::uint64_t{64} << 10;   ///< unit of one checksum
};

/// One version of a file in a remote storage.
struct cached_object {
  std::string name{};
  file_identity identity{};

  friend bool operator==(const cached_object&, const cached_object&) = default;
};

/// The head of a block's file.
struct cache_block_head {
  cached_object object{};
  std::uint64_t number = 0;   ///< the block begins at the offset number * block_bytes of the object
  std::uint64_t block_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint64_t data_bytes = 0;             ///< smaller than block_bytes only in the last block of the object
  std::vector<std::uint32_t> checksums{};   ///< CRC-32C of each chunk
};

/// Returns the bytes of the head, including the zeros before the data.
std::string bytes_of_head(const cache_block_head& head);
/// Returns the checksum of each chunk of `data`.
std::vector<std::uint32_t> cached_chunk_checksums(std::span<const std::byte> data, std::uint64_t chunk_bytes);

/// A block that is open for reading. The shared lock on its file shows other processes that the block is in use.
class cache_block {
 public:
  /// Creates a cache_block without a file.
  cache_block() = default;
  /// Becomes the owner of an open file, and reads its head.
  explicit cache_block(unique_fd file);

  /// Returns whether a file is open.
  explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  /// Returns whether the head is valid. The head of a file that ends early is not valid.
  bool has_valid_head() const noexcept { return head_.has_value(); }
  /// Returns the head. Requires has_valid_head().
  const cache_block_head& head() const noexcept { return *head_; }
  /// Returns whether this is block `number` of `object`, with the block size of `layout`.
  bool belongs_to(const cached_object& object, std::uint64_t number, const cache_layout& layout) const noexcept;
  /// Reads until the buffer is full or the block ends. Returns the number of bytes read, or nothing if a checksum is
  /// wrong. Requires a valid head, and an offset within the data.
  std::optional<std::size_t> read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer);
  /// Returns whether every checksum is correct. Requires a valid head.
  bool check_all();
  int file() const noexcept { return file_.get(); }

 private:
  std::size_t bytes_of_chunk(std::uint64_t chunk) const noexcept;
  /// Reads complete chunks, and checks them. Returns false if a chunk is damaged.
  bool read_chunks(std::uint64_t first, std::span<std::byte> into) const noexcept;
  bool load_chunk(std::uint64_t chunk);

  unique_fd file_;
  std::optional<cache_block_head> head_;
  std::uint64_t data_at_ = 0;
  std::vector<std::byte> chunk_{};   // the latest chunk that was loaded for a partial read; the next read may reuse it
  std::uint64_t chunk_number_ = ~std::uint64_t{0};
};

/// Opens a block, and locks its file with a shared lock. If another thread or process is removing the file, opens the
/// block without a lock. If the file does not exist, returns a cache_block without a file.
cache_block open_cache_block(const std::string& path);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/cache/impl/cache_block.inl>
#endif
