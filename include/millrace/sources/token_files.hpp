// token_files: files that hold nothing but tokens as the source of a flow, cut into windows.
//
//   auto flow = mr::token_files("train-{000..015}.u16", {.length = 2049, .stride = 2048, .seed = 1})
//             | mr::shuffle({.window = 65536})                    // of items mr::packed, which have only ids
//             | mr::batch<&mr::packed::ids>({.size = 32});
//
// A file is an array of little-endian u16 or u32 without a header. Names that end in .u32 hold u32, others u16, unless
// token_bytes is set. Window i of a file begins at token i * stride. The tokens after the last whole window of a file
// are counted and left out; with keep_short they become a shorter item, for pack().
// Files are read in pieces of 256 KiB, or of a window where windows lie far apart.
// Errors: setup_error for missing files, for a length of 0 and for other token sizes. A file that is not a whole
// number of tokens is a data_error. A file that is truncated while it is read is an io_error.
// Threads: as lines().
#pragma once

#include <millrace/flow/flow.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/measure/event_counts.hpp>
#include <millrace/sources/shard_list.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of token_files().
struct token_files_options {
  std::size_t length = 1024;      ///< tokens per window
  std::size_t stride = 0;         ///< tokens from the start of a window to the start of the next; 0: the length
  std::uint64_t seed = 0;         ///< seed of the shuffle and of all random numbers
  std::size_t token_bytes = 0;    ///< bytes per token, 2 or 4; 0: 4 for names that end in .u32, else 2
  bool keep_short = false;        ///< delivers a shorter last window of a file
  millrace::storage storage{};    ///< where the files are
};

namespace detail {

/// Reads the windows of one file, in order. Throws data_error if the file is not a whole number of tokens.
class token_reader {
 public:
  token_reader(const std::string& name, const token_files_options& options);

  /// Returns the next window; nothing at the end of the file.
  std::optional<packed> next();
  void report(event_counts& counts) const noexcept;

  static std::size_t token_bytes_of(const std::string& name, const token_files_options& o);

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  /// Returns the bytes of these tokens, valid until the next call.
  const std::byte* bytes_of(std::size_t first, std::size_t count);

  token_files_options options_;
  std::unique_ptr<byte_source> file_;
  std::size_t token_bytes_;
  std::vector<std::byte> held_;
  std::size_t held_first_ = 0;   // its first token
  std::size_t tokens_ = 0;
  std::size_t at_ = 0, end_ = 0;   // start of the next window and end of the last one, in tokens
};

/// The source that token_files() makes: files of tokens, cut into windows.
class token_files_source {
 public:
  using item = packed;
  static constexpr bool same_every_pass = true;

  token_files_source(std::vector<std::string> names, const token_files_options& options);

  std::size_t shards() const noexcept { return files_.size(); }
  const std::string& shard_name(std::size_t shard) const noexcept { return files_.name(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const { return files_.size_bytes(shard); }
  std::int64_t shard_modified_ns(std::size_t shard) const { return files_.changed(shard); }
  token_reader open(std::size_t shard, std::uint64_t) const { return {files_.name(shard), options_}; }

 private:
  file_list files_;
  token_files_options options_;
};

bool names_tokens(std::string_view name) noexcept;
inline constexpr folder_rule tokens_of_a_folder{names_tokens, "Files of tokens end in .u16, .u32 or .bin"};

}  // namespace detail

/// Returns a flow of windows (packed, ids only). `names` is one pattern or a list. In folders it takes names that end
/// in .u16, .u32 or .bin. Throws setup_error for missing files and for bad options.
template <class Names>
auto token_files(const Names& names, const token_files_options& options = {}) {
  const detail::listing_options listing{.rule = detail::tokens_of_a_folder, .at = options.storage};
  return detail::flow<packed, detail::token_files_source>{
      {}, detail::token_files_source(detail::list_files(names, listing), options), options.seed};
}

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/token_files.ipp>
#endif
