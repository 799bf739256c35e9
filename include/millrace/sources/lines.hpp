// lines: reads text files line by line, such as plain text, JSON Lines, or one document per line.
//
//   std::vector<std::uint32_t> tokenize(std::string_view);
//   auto all = mr::lines("corpus-{0000..1023}.jsonl.gz", {.seed = 1})     // braces, "a.txt::b.txt", globs, folders
//            | mr::map(tokenize);
//   auto odd = mr::lines(std::vector<std::string>{"odd{name}.txt"});      // the paths of a list are used literally
//
// Delivers lines (item/line.hpp). Reads plain files, and files compressed with gzip, zstd, bzip2, xz or lz4. The
// content of a file, not its name, determines the compression. Each file is a shard. Therefore a shuffle also permutes
// the files, and a lane (an interleaved substream of the order) consists of complete files. A resumed run reads files
// again to find its position. In a folder, lines() reads the files that end in .txt, .jsonl, .ndjson, .json, .csv or
// .tsv, compressed or not. Errors: the errors of line_reader, and setup_error for missing files. Threads: each file is
// read by one I/O thread. Several files are read at the same time.
#pragma once

#include <millrace/base/limits.hpp>
#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/tar/read/shard_stream.hpp>
#include <millrace/item/line.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

// Reads the lines of one text file, plain or compressed, in order.
//
//   mr::line_reader file(std::make_unique<mr::file_source>("corpus-0000.txt.gz"), pool,
//                        {.limits = {.max_line_bytes = 1 << 20}});
//   while (auto line = file.next()) use(line->text(), line->number());
//
// A line ends at "\n" or "\r\n". The last line may end without these characters. A byte order mark at the start of the
// file is skipped. The content of the file determines the compression: gzip, bzip2, xz, zstd, lz4. A file that is
// empty, or that contains only a byte order mark, has no lines.
// Errors: data_error for a line that is too long or not UTF-8. The error contains file, line and offset. If the line is
// not UTF-8, the error also contains the column (in characters, from 1). In both cases, the error concerns only one
// line: the next call returns the next line. The following errors end the file, and every later call throws the same
// error:
// - late_data_error for a damaged or truncated compressed stream; earlier lines of the file may be wrong
// - data_error if the decompressed size exceeds line_limits::max_expansion
// - data_error for a file of another kind (an archive, a database, an image, a Git LFS pointer), with the name of the
//   kind
// - the errors of the byte_source that reads the file
//
// The complete lines before an error are delivered first.
// Memory: one block for about 64 KiB of text. The text is copied once. Later blocks reuse memory of the pool. Threads:
// not thread-safe. Lifetime: the pool must outlive the reader.

/// Options of line_reader.
struct line_reader_options {
  line_limits limits{};      ///< limits on the content of a file
  bool skip_empty = false;   ///< counts empty lines, but does not deliver them
  bool check_utf8 = true;    ///< whether text that is not UTF-8 is an error
};

/// Reads the lines of one file.
class line_reader {
 public:
  line_reader(std::unique_ptr<byte_source> source, block_pool& pool, line_reader_options options = {});

  /// Returns the next line, or nothing at the end of the file. The comment before this class lists the errors.
  std::optional<line> next();
  /// Returns whether the last call of next() threw an error that concerns only one line. If true, you can call next()
  /// again.
  bool can_continue() const noexcept { return line_failed_; }
  /// Throws the error of the compressed stream if the stream is damaged within the next 64 MiB. The error of a line may
  /// be a result of such damage. Therefore, call check_rest() before you report the error of a line. After this call,
  /// no more lines can be read.
  void check_rest();

  /// Adds the number of skipped empty lines to `counts`.
  void report(event_counts& counts) const noexcept;

 private:
  static constexpr const char* stage = "lines";
  static constexpr std::size_t block_bytes = std::size_t{64} << 10, block_lines = 512;
  static constexpr std::string_view field_name = "line", byte_order_mark = "\xef\xbb\xbf";

  /// One line of the next block.
  struct span_of_line {
    std::size_t at, size;   // offset and size in the text of the block, in bytes
    std::uint64_t number;
  };
  /// A line in `lines_` that cannot be delivered.
  struct bad_line {
    std::size_t index;
    std::exception_ptr why;
  };
  static constexpr std::size_t no_head = ~std::size_t{0};   // in heads_: the line cannot be delivered

  void read_block();
  /// Throws data_error if the first chunk shows that the file contains no lines of text, for example an archive.
  void check_kind(std::string_view front) const;

  /// Reads until `rest_` has a line end or the file ends. Moves earlier text to `pending_`. Returns false after it has
  /// skipped a line that is too long.
  bool find_line_end();

  /// Skips the line that begins with `pending_` and continues in `rest_`, without storing it.
  void skip_line();

  /// Finds the lines in the concatenation of `pending_` and `rest_`. Sets `consumed_bytes_`.
  void find_lines();
  void add_line(std::size_t begin, std::size_t end);

  /// Writes the block: the text, the names, and for each line its number, its field_entry and its record_head.
  void build_block();
  static std::size_t put(std::byte* base, std::size_t& at, std::string_view text) noexcept;

  /// Records an error for each line that is not UTF-8.
  void check_text(std::string_view text);

  data_error not_utf8(const span_of_line& bad, std::string_view text, std::size_t good) const;
  data_error too_long(std::uint64_t number, std::uint64_t size, std::uint64_t offset_bytes) const;
  std::string subject(std::uint64_t number) const;
  error_location where(std::uint64_t number, std::uint64_t offset_bytes) const;
  std::string last_line() const;
  /// Records the error of the last line in `lines_`.
  void fail_last(data_error why);

  line_reader_options options_;
  std::unique_ptr<byte_source> source_;
  block_pool* pool_;
  std::unique_ptr<detail::shard_stream> stream_;
  std::string pending_;              // start of a line, from earlier chunks
  std::string_view rest_;            // unread rest of the current chunk
  std::size_t consumed_bytes_ = 0;   // bytes of `rest_` in the next block
  std::uint64_t offset_bytes_ = 0;   // offset of `pending_` in the decompressed file
  std::uint64_t number_ = 0;         // number of the last line that was read
  std::uint64_t empty_lines_ = 0;
  std::vector<span_of_line> lines_;
  std::vector<bad_line> bad_;   // in the order of their lines
  detail::block_ref block_;
  std::vector<std::size_t> heads_;    // for each line, the offset of its head in the block, or no_head
  std::size_t at_ = 0, bad_at_ = 0;   // indices of the next entries in `heads_` and `bad_`
  bool ended_ = false, line_failed_ = false;
  std::exception_ptr failure_;
};

/// Options of lines().
struct lines_options {
  std::uint64_t seed = 0;        ///< seed of the shuffle and of all random numbers
  line_limits limits{};          ///< limits on the content of a file
  bool skip_empty = false;       ///< counts empty lines, but does not deliver them
  bool check_utf8 = true;        ///< whether text that is not UTF-8 is an error
  millrace::storage storage{};   ///< storage that contains the files
};

namespace detail {

bool is_text_name(std::string_view name) noexcept;
inline constexpr listed_folder_rule text_folder_rule{
    is_text_name, "Files of lines end in .txt, .jsonl, .ndjson, .json, .csv or .tsv, optionally followed by .gz, "
                  ".zst, .bz2, .xz or .lz4. Select other files with a pattern"};

/// The source that lines() returns: text files, read line by line.
class lines_source {
 public:
  using item = line;
  static constexpr bool same_every_pass = true;

  lines_source(std::vector<std::string> names, const lines_options& o);

  std::size_t shards() const noexcept { return files_.size(); }
  std::string shard_name(std::size_t shard) const { return files_.name(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const { return files_.size_bytes(shard); }
  std::int64_t shard_modified_ns(std::size_t shard) const { return files_.changed(shard); }
  line_reader open(std::size_t shard, std::uint64_t) const;
  /// Returns the meter of all reads.
  read_meter& reads() const noexcept { return *reads_; }
  /// Returns a copy of this source that records its reads in `meter`.
  lines_source watched_in(std::shared_ptr<read_meter> meter) const;

 private:
  file_list files_;
  line_reader_options options_;
  std::shared_ptr<block_pool> pool_;
  std::shared_ptr<read_meter> reads_;
};

}   // namespace detail

/// Returns the files that lines() reads, in order. `names` is one pattern or a list of paths. Throws setup_error if a
/// file is missing.
template <detail::file_names Names = std::vector<std::string>>
std::vector<std::string> list_texts(const Names& names) {
  return detail::list_files(names, {.rule = detail::text_folder_rule, .at = {}});
}
/// Returns a flow of lines. `names` is one pattern or a list of paths. Throws setup_error if a file is missing.
template <detail::file_names Names = std::vector<std::string>>
auto lines(const Names& names, const lines_options& options = {}) {
  const detail::shard_listing_options listing{.rule = detail::text_folder_rule, .at = options.storage};
  return detail::flow<line, detail::lines_source>{
      {}, detail::lines_source(detail::list_files(names, listing), options), options.seed};
}

// clang-format off
/// Declared only for its error message: the second argument of lines() must be an options object.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, lines_options>)
__attribute__((unavailable("millrace: the second argument of lines() is its options. Name the option, such as "
                           "lines(names, {.seed = 7}); several names are one list.")))
detail::broken_flow lines(const Names&, const Other&);
// clang-format on

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/lines.inl>
#endif
