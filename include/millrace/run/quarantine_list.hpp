// quarantine_list: a text file that lists damaged samples. keys_from() reads such a file.
//
//   mr::quarantine_list damaged("run1/quarantine-0.jsonl");
//   try { train_on(sample); }
//   catch (const mr::data_error& e) {
//     const mr::error_location& at = e.where();
//     damaged.add({.shard = at.shard, .key = at.key, .offset_bytes = at.offset_bytes, .reason = e.message()});
//   }
//   auto clean = mr::shards(all, {.without = mr::keys_from("run1/quarantine-*.jsonl")});
//
// Each line is a JSON object: {"shard": "train-003.tar", "key": "n01440764/0017", "offset": 512, "position": 4711,
// "epoch": 2, "stage": "jpeg", "reason": "..."}. Unknown numbers are left out. If a string is not UTF-8, a second
// member contains its bytes in hexadecimal. The name of the second member ends in "_hex": {"key": "?", "key_hex":
// "ff00"}. A line with a null key is a note about its shard, and keys_from() skips the line.
// No sample is listed twice, even across epochs and restarts. A sample is identified by its key and the file name of
// its shard. Each shard has at most one note. If a crash truncated the last line, that line is removed when the list is
// opened.
// An entry is on the disk when add() returns. Each rank needs its own file. Memory: the keys of all entries.
// Errors:
// - setup_error if the name ends neither in .jsonl nor in .ndjson; setup_error if another quarantine_list uses the file
// - data_error for a line that is not an entry
// - io_error with the file's name, for example if the disk is full
//
// Threads: not thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/append_file.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// An entry of the list: a damaged sample, or a note about a shard with unreadable samples.
struct damaged_sample {
  std::string shard{};                                    ///< path of the shard
  std::string key{};                                      ///< key of the sample; empty for a note about the shard
  std::uint64_t offset_bytes = error_location::unknown;   ///< offset in the shard; left out if unknown
  std::uint64_t position = error_location::unknown;       ///< position in the run's order; left out if unknown
  std::uint64_t epoch = error_location::unknown;          ///< epoch of the detection; left out if unknown
  std::string stage{};                                    ///< stage that detected the damage
  std::string reason{};                                   ///< description of the damage
};

/// A file with one line for each damaged sample.
class quarantine_list {
 public:
  /// Opens the file and reads its entries. Creates the file and its folders if they are missing.
  explicit quarantine_list(const std::string& path);

  /// Appends an entry, and flushes it to the disk. Returns false, and writes nothing, if the sample is already listed.
  bool add(const damaged_sample& sample);

  /// Returns the number of samples and notes in the list.
  std::uint64_t size() const noexcept { return entries_.size(); }
  /// Returns the path of the file.
  const std::string& path() const noexcept { return file_.path(); }

 private:
  /// Returns the text that identifies an entry.
  static std::string identity(std::string_view shard, std::string_view key);

  void read_entries();

  detail::append_file file_;
  std::set<std::string> entries_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/quarantine_list.inl>
#endif
