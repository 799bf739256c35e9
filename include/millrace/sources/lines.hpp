// lines: reads text files line by line, such as plain text, JSON Lines, or one document per line.
//
//   std::vector<std::uint32_t> tokenize(std::string_view);
//   auto all = mr::lines("corpus-{0000..1023}.jsonl.gz", {.seed = 1})     // braces, "a.txt::b.txt", globs, folders
//            | mr::map(tokenize);
//   auto odd = mr::lines(std::vector<std::string>{"odd{name}.txt"});      // the paths of a list are used literally
//
// Delivers lines (item/line.hpp). Reads plain files, and files compressed with gzip, zstd, bzip2, xz or lz4. The
// content of a file, not its name, determines the compression. Each file is a shard: a shuffle permutes the files, and
// a lane (an interleaved substream of the order) consists of complete files. A resumed run reads files again to find
// its position. In a folder, lines() reads the files that end in .txt, .jsonl, .ndjson, .json, .csv or .tsv, compressed
// or not. Errors: the errors of sources/line_reader.hpp, and setup_error for missing files. Threads: one I/O thread
// reads each file. Several files are read at the same time.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/sources/line_reader.hpp>
#include <millrace/sources/list/shard_list.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

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
inline constexpr folder_rule text_folder_rule{
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
/// Overload for a second argument that is not an options object. The compiler shows its error message.
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
