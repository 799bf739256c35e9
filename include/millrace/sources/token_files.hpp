// token_files: reads files of tokens, divided into windows of a fixed length.
//
//   auto flow = mr::token_files("train-{000..015}.u16", {.length = 2049, .stride = 2048, .seed = 1})
//             | mr::shuffle({.window = 65536})                    // items: mr::packed, which contain only ids
//             | mr::batch<&mr::packed::ids>({.size = 32});
//
// A file is a flat array of little-endian integers, a .npy file of integers, or a token file of the program llm.c. The
// extension of a flat file, .u8 to .u64 or .i8 to .i64, determines the type of the tokens. Other flat files contain
// u16, unless token_bytes is set. If a flat array follows a header of any other format, set header_bytes to the size of
// this header. Window i of a file begins at token i * stride. The tokens after the last complete window of a file are
// counted, but not delivered. With keep_short, these tokens are delivered as a shorter item, for example for pack().
// With `documents`, the items are the documents of Megatron's .bin files. The .idx file next to each .bin file lists
// the documents. Documents have different lengths, so the flow needs pack() or a ragged column:
//
//   auto rows = mr::token_files("corpus_text_document.bin", {.seed = 1, .documents = true})
//             | mr::shuffle({.window = 65536}) | mr::pack({.length = 2049, .separator = 50256});
//
// At the start, the sizes and headers of the files determine the number of windows. Therefore the order is exact, as
// for shards() with an index. In each pass, all ranks together deliver each window once. The number of ranks may be any
// divisor of the global batch. A resumed run does not read the windows of earlier batches. If the flow has pack,
// expand, filter, take, bucket, or a shuffle that does not follow token_files() directly, the windows are streamed
// instead. Errors:
// - setup_error for missing files, and with `documents` for a missing .idx file
// - setup_error for a length or stride of 0, and for a token_bytes that is not 1, 2, 4 or 8
// - data_error for a file of another kind, such as a compressed file or a text (sources/token_layout.hpp)
// - data_error for a file size that is not a multiple of the token size
// - data_error for an .idx file that does not match its .bin file
// - data_error for an id that is negative or not in the vocabulary
// - io_error for a file that is truncated while it is read
//
// Threads: several I/O threads read at the same time. If the windows are streamed, only one thread at a time reads a
// given file.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/sources/token_data.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of token_files().
struct token_files_options {
  std::size_t length = 1024;             ///< tokens per window
  std::optional<std::size_t> stride{};   ///< distance between the starts of two windows, in tokens; default: length
  std::uint64_t seed = 0;                ///< seed of the shuffle and of all random numbers
  /// Size of a token: 1, 2, 4 or 8 bytes. By default, the header or the name of the file determines the size.
  std::optional<std::size_t> token_bytes{};
  /// Bytes before the first token of each file. If set, every file is read as a flat array, without a search for
  /// headers.
  std::optional<std::size_t> header_bytes{};
  std::optional<std::size_t> vocabulary{};   ///< ids must be below this value; default: 2^32
  bool keep_short = false;                   ///< delivers the last window of a file even if it is shorter
  bool documents = false;                    ///< delivers the documents of Megatron's files; ignores length and stride
  millrace::storage storage{};               ///< storage that contains the files
};

namespace detail {

/// Reads the windows of one file, in order. Throws data_error if the file does not consist of tokens.
class token_reader {
 public:
  /// `cached` are the windows of the same file from an earlier reader. If the size of the file has not changed, these
  /// windows are used.
  token_reader(const std::string& name, const token_files_options& options,
               const std::optional<token_windows>& cached = {});

  /// Returns the windows of the file.
  const token_windows& windows() const noexcept { return windows_; }

  /// Returns the next window, or nothing at the end of the file.
  std::optional<packed> next();
  void report(event_counts& counts) const noexcept;

 private:
  /// Returns the bytes of the file at `place`. They are valid until the next call.
  std::span<const std::byte> bytes_at(const byte_range& place);

  std::unique_ptr<byte_source> file_;
  token_windows windows_;
  std::size_t piece_bytes_;   // minimum size of one read
  std::uint32_t max_id_;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_at_ = 0;   // offset of buffer_ in the file
  std::uint64_t next_ = 0;        // number of the next window
};

/// The source that token_files() returns.
class token_files_source {
 public:
  using item = packed;
  using planned = indexed_run<token_data>;
  static constexpr bool same_every_pass = true;
  static constexpr bool also_streams = true;

  token_files_source(std::vector<std::string> names, const token_files_options& options);

  std::size_t shards() const noexcept { return files_.size(); }
  std::string shard_name(std::size_t shard) const { return files_.name(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const { return files_.size_bytes(shard); }
  std::int64_t shard_modified_ns(std::size_t shard) const { return files_.changed(shard); }
  /// Opens a file. The first reader of a file reads its .idx file. Later readers reuse the documents.
  token_reader open(std::size_t shard, std::uint64_t) const;
  /// Returns a run in an exact order.
  owner<planned_run> plan(const indexed_run_options& o) const;

 private:
  struct cached_documents {
    std::mutex mutex{};
    std::vector<std::optional<token_windows>> of{};   // for each file
  };

  file_list files_;
  token_files_options options_;
  std::shared_ptr<cached_documents> cached_ = std::make_shared<cached_documents>();   // the source's copies share it
};

bool is_token_name(std::string_view name) noexcept;
inline constexpr listed_folder_rule token_folder_rule{is_token_name,
                                                      "Tokens are in .u8 to .u64, .i8 to .i64, .bin and .npy files"};

}   // namespace detail

/// Returns a flow of windows. Each window is a `packed` that contains only ids. `names` is one pattern or a list. In
/// folders, files that end in .u8 to .u64, .i8 to .i64, .bin or .npy are read. Throws setup_error for missing files and
/// for invalid options.
template <detail::file_names Names = std::vector<std::string>>
auto token_files(const Names& names, const token_files_options& options = {}) {
  const detail::shard_listing_options listing{.rule = detail::token_folder_rule, .at = options.storage};
  return detail::flow<packed, detail::token_files_source>{
      {}, detail::token_files_source(detail::list_files(names, listing), options), options.seed};
}

// clang-format off
/// Overload for a second argument that is not an options object. The compiler shows the message of the attribute.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, token_files_options>)
__attribute__((unavailable("millrace: the second argument of token_files() is its options. Name the option, such as "
                           "token_files(names, {.seed = 7}); several names are one list.")))
detail::broken_flow token_files(const Names&, const Other&);
// clang-format on

}}   // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/token_files.inl instantiates these
#include <millrace/read/stage/shard_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<packed>;
extern template class jitter_order<packed>;
extern template class indexed_source<token_data, exact_order>;
extern template class indexed_run<token_data>;
extern template class reorder_buffer<indexed_source<token_data, exact_order>>;
extern template class read_stage_base<indexed_source<token_data, exact_order>>;
extern template class shard_read_stage<indexed_source<token_data, exact_order>>;

}}}   // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_files.inl>
#endif
