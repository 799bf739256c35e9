// The data set of an indexed run over token_files(). The windows of the token files can be read in any order.
//
//   auto data = std::make_shared<mr::detail::token_data>(files, options);
//   data->counts();                                               // number of windows of each file
//   mr::detail::token_data::access reader(*data, samples);          // belongs to one thread
//   for (const auto& w : samples) use(reader.read(w.sample));
//
// The constructor counts the windows of each file. For this, it reads the front of the file, or Megatron's .idx file.
// It needs no index files of Millrace. A sample is one window of tokens. The order of the samples, which expect()
// receives, determines the reads:
// - If the samples are close together and in the order of the files, a reader reads pieces of 256 KiB.
// - If a shuffle moves small samples, and the samples of one shuffle window fit into the allowed memory, a reader
//   reads blocks. A block is cached until the neighboring samples are read.
// - In all other cases, a reader reads each sample separately. The reader announces all samples to the storage at once,
//   so that the storage can read several samples at the same time.
//
// At most 128 files stay open between reads.
// Errors: setup_error if no file has a window; the errors of read_token_windows(); io_error for a file whose size
// differs from the size that the constructor read. Threads: any number of `access` objects may be used at the same
// time, each by one thread.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/read/block_size.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/exact_order.hpp>
#include <millrace/sources/token_windows.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Caches blocks of token files. If windows are read in a shuffled order, the cache avoids repeated reads of a block.
//
// If the cached bytes exceed `limit_bytes`, the least recently requested blocks are evicted. Errors: the errors of the
// reading function.
// Threads: thread-safe. If several threads request the same block, one thread reads it, and the others wait. Lifetime:
// an evicted block remains valid until the last pointer to it is destroyed.

/// The cache. The name of a block consists of the file and the number of the block in this file.
class token_blocks {
 public:
  struct options {
    std::size_t block_bytes = std::size_t{256} << 10, limit_bytes = 0;
  };
  struct name {
    std::uint64_t file = 0, number = 0;

    friend bool operator==(const name&, const name&) = default;
  };
  using bytes = std::vector<std::byte>;

  explicit token_blocks(const options& o) : options_(o) {}
  token_blocks(const token_blocks&) = delete;
  token_blocks& operator=(const token_blocks&) = delete;

  std::size_t block_bytes() const noexcept { return options_.block_bytes; }
  bool has(const name& n) const {
    const std::lock_guard lock(mutex_);
    return blocks_.contains(n);
  }

  /// Returns a block. Calls `read(bytes&)` if the block is not in memory.
  template <class Read>
  std::shared_ptr<const bytes> get(const name& n, const Read& read) {
    const std::shared_ptr<block> b = find_or_add(n);
    const std::lock_guard lock(b->mutex);
    if (!b->is_read) {
      try {
        read(b->data);
      } catch (...) {
        drop(n, *b);
        throw;
      }
      b->is_read = true;
      retain(*b);
    }
    return {b, &b->data};
  }

 private:
  struct block {
    std::mutex mutex{};   // guards data and is_read
    bytes data{};
    bool is_read = false;
    bool is_dropped = false;   // this and the members below are guarded by the cache's mutex
    std::size_t counted_bytes = 0;
    std::uint64_t last_request = 0;
  };
  struct hash {
    std::size_t operator()(const name& n) const noexcept {
      return static_cast<std::size_t>(combine_keys(combine_keys(0, n.file), n.number));
    }
  };

  std::shared_ptr<block> find_or_add(const name& n);
  void drop(const name& n, block& b);
  /// Counts a block that was read, and evicts older blocks if the limit is exceeded.
  void retain(block& b);

  const options options_;
  mutable std::mutex mutex_;   // locked after the mutex of a block
  std::unordered_map<name, std::shared_ptr<block>, hash> blocks_;
  std::size_t retained_bytes_ = 0;
  std::uint64_t requests_ = 0;
};

/// Options of token_data.
struct token_data_options {
  token_window_rule windows{};
  token_layout_options layout{};
  std::uint32_t max_id = ~std::uint32_t{0};   ///< maximum valid token id; a larger id is an error
};

/// The windows of a list of files.
class token_data {
 public:
  using item = packed;
  class access;

  token_data(const file_list& files, const token_data_options& o);
  token_data(const token_data&) = delete;
  token_data& operator=(const token_data&) = delete;

  /// Returns the number of windows of each file.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  std::uint64_t id_of(const located_sample& s) const noexcept { return s.id(); }
  /// Returns the digest of the choice of samples: 0, because all windows are used.
  std::uint64_t choice() const noexcept { return 0; }
  const std::string& choice_text() const noexcept { return no_choice_; }
  /// Returns the total size of all windows, in bytes.
  std::uint64_t size_bytes() const noexcept { return window_bytes_; }
  /// Returns a digest of names, sizes, types and windows.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// Returns the file and the offset of a window.
  error_location location_of(const located_sample& s) const;
  /// Returns a name such as "books.u16:3".
  std::string name_of(const located_sample& s) const { return files_.name(s.shard) + ":" + std::to_string(s.index); }
  read_meter& reads() const noexcept { return reads_; }
  /// Counts the tokens that are not in any window.
  void report(event_counts& counts) const noexcept {
    for (const token_windows& w : windows_) w.report(counts);
  }
  /// Sets the order in which windows will be read. Call it before the first read. Returns the maximum bytes of cached
  /// blocks.
  std::size_t expect(const expected_order& order);
  /// Announces to the storage the order in which files will be opened.
  void expect_shards(std::span<const std::size_t> files) const { files_.expect(files); }

 private:
  static constexpr std::size_t max_open = 128, piece_bytes = std::size_t{256} << 10;

  struct open_file {
    std::size_t file;
    metered_file source;
  };

  /// Returns an open file for one thread: an idle file, or a new one.
  std::unique_ptr<open_file> acquire(std::size_t file);
  void release(std::unique_ptr<open_file> opened) noexcept;

  file_list files_;
  const token_data_options options_;
  std::vector<token_windows> windows_;
  std::vector<std::uint64_t> counts_, sizes_;   // for each file: number of windows, size in bytes
  std::uint64_t window_bytes_ = 0, fingerprint_ = 0;
  std::string no_choice_{};
  bool in_order_ = true;   // whether windows are read in the order of the files
  std::optional<token_blocks> blocks_;
  mutable read_meter reads_;
  std::mutex mutex_;                               // guards idle_
  std::vector<std::unique_ptr<open_file>> idle_;   // the most recently used file is last
};

/// Reads windows, for one thread.
class token_data::access {
 public:
  /// `samples` are the windows that will be read, in order.
  access(token_data& data, std::span<const ordered_sample> samples);
  access(const access&) = delete;
  access& operator=(const access&) = delete;
  ~access();

  packed read(const located_sample& s);
  /// Returns the CRC-32C of the stored bytes of the window that was read last.
  std::uint32_t checksum() const noexcept { return checksum_; }

 private:
  /// Returns stored bytes, which are valid until the next call.
  std::span<const std::byte> fetch(std::size_t file, const byte_range& place);
  std::span<const std::byte> from_piece(std::size_t file, const byte_range& place);
  std::span<const std::byte> from_blocks(std::size_t file, const byte_range& place);
  std::shared_ptr<const token_blocks::bytes> block(const token_blocks::name& name);
  /// Announces the next reads to the storage.
  void announce(std::span<const ordered_sample> samples);
  byte_source& source_of(std::size_t file);

  token_data* data_;
  std::vector<std::unique_ptr<open_file>> open_;   // the open files
  std::size_t last_file_ = 0;                      // file and end offset of the last window to read
  std::uint64_t end_bytes_ = 0;
  bool is_sparse_ = false;   // whether the windows are far apart
  token_blocks::name block_name_{};
  std::shared_ptr<const token_blocks::bytes> block_{};
  std::vector<std::byte> buffer_{};
  std::size_t buffer_file_ = 0;
  std::uint64_t buffer_at_ = 0;   // offset of buffer_ in the file
  std::uint32_t checksum_ = 0;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_data.inl>
#endif
