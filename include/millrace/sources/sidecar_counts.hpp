// Finds out how many samples shards have, from files of other tools: for shards that cannot have a Millrace index.
//
//   auto counts = mr::sidecar_counts(shards);                                  // one std::optional for each shard
//   auto more = mr::sidecar_counts(shards, {.wids_file = "shardindex.json"});
//   if (counts[k]) plan_with(*counts[k]);              // compare with the samples read, at the end of the shard
//
// Looks beside each shard for DALI's "<name up to its first dot>.idx" and for OpenCLIP's "sizes.json". If a wids file
// is named, it is read, too ("url" and "nsamples"). A count on which two files disagree is unknown.
// The offsets in these files are not even read. The offsets of wds2idx are wrong for pax headers and for long names.
// Checking the header at each offset would amount to the scan that builds a Millrace index
// (io/index/tar_index_scan.hpp).
// Errors: data_error, with file and offset, for a file whose content does not match its name; io_error for a file that
// cannot be read. Threads: no shared state.
// Formats: DALI, "Creating an Index" (wds2idx); webdataset/wids, "wids-shard-index-v1"; JSON as in RFC 8259.
#pragma once

#include <millrace/base/version.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of sidecar_counts().
struct sidecar_counts_options {
  std::string wids_file{};   ///< path of a wids index; empty: none
};

namespace detail {

/// Reads JSON. At the end of each object, passes its members that are strings or whole numbers to the callable.
class json_objects {
 public:
  struct member {
    std::string key{};
    std::string text{};                       // content of a string
    std::optional<std::uint64_t> number{};
  };

  json_objects(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  template <class Take>
  void for_each(const Take& take) {
    value(take, 0);
    skip_blanks();
    if (at_ < text_.size()) fail();
  }

 private:
  static constexpr int deepest = 64;

  [[noreturn]] void fail() const;
  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool next_is(char c);

  template <class Take>
  member value(const Take& take, int depth) {
    member m;
    if (depth > deepest) fail();
    if (next_is('{')) {
      std::vector<member> members;
      if (!next_is('}')) {
        do {
          if (!next_is('"')) fail();
          std::string key = string_behind_quote();
          if (!next_is(':')) fail();
          members.push_back(value(take, depth + 1));
          members.back().key = std::move(key);
        } while (next_is(','));
        if (!next_is('}')) fail();
      }
      take(members);
    } else if (next_is('[')) {
      if (next_is(']')) return m;
      do value(take, depth + 1);
      while (next_is(','));
      if (!next_is(']')) fail();
    } else if (next_is('"')) {
      m.text = string_behind_quote();
    } else {
      const std::size_t end = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      const std::string_view word = text_.substr(at_, end - at_);
      std::uint64_t number = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
      if (read.ec == std::errc() && read.ptr == word.data() + word.size()) m.number = number;
      else if (word.empty() || (word != "true" && word != "false" && word != "null" &&
                                word.find_first_not_of("0123456789+-.eE") != std::string_view::npos))
        fail();
      at_ = end;
    }
    return m;
  }

  std::string string_behind_quote();

  /// Appends a \u escape as UTF-8. Surrogate pairs are not joined: file names do not contain them.
  void append_code_unit(std::string& out);

  std::string_view text_, path_;
  std::size_t at_ = 0;
};

inline std::string_view name_in_folder(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

/// Returns a file's content, of a long file at least its first `max_bytes`; nothing if the file does not exist.
std::optional<std::string> small_file(const std::string& path, std::size_t max_bytes = std::size_t{64} << 20);

/// Returns the count from the first line: "v1.2 <samples>".
std::uint64_t count_of_dali_index(std::string_view text, const std::string& path);

/// Holds counts by file name. A name with two different counts has no count.
class counts_by_name {
 public:
  void add(std::string_view name, std::uint64_t count);
  const std::optional<std::uint64_t>* find(std::string_view name) const;

 private:
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> counts_;
};

counts_by_name counts_of_sizes(std::string_view text, const std::string& path);

counts_by_name counts_of_wids(std::string_view text, const std::string& path);

}  // namespace detail

/// Returns the number of samples of each shard; nothing for a shard whose count is unknown. Throws data_error if a file
/// is malformed, io_error if the wids file does not exist or a file cannot be read.
std::vector<std::optional<std::uint64_t>> sidecar_counts(std::span<const std::string> shards,
                                                         const sidecar_counts_options& options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/sidecar_counts.ipp>
#endif
