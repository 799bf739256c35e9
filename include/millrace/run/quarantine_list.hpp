// quarantine_list: a file of samples that are damaged, for keys_from() and for people.
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
// "epoch": 2, "stage": "jpeg", "reason": "..."}. Numbers that are not known are left out. A name that is not UTF-8 is
// there a second time, with "_hex" after its name: {"key": "?", "key_hex": "ff00"}. A null as the key makes the line a
// note about its shard: keys_from() leaves it out.
// No sample is listed twice, whatever epochs and restarts: the list knows the lines that the file has when it is
// opened. A sample is known by its key and the file name of its shard. A shard has one note. A last line that was cut
// off by a crash is removed at the opening.
// An entry is on the disk when add() returns. Each rank needs its own file. Memory: the keys.
// Errors: setup_error for a name that does not end in .jsonl or .ndjson, and if another list has the file open;
// data_error for a line that is not an entry; io_error with the file's name, also for a full disk. Threads: one.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/append_file.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// A sample that cannot be used, and why. Without a key: a shard of which samples cannot be read.
struct damaged_sample {
  std::string shard{};   ///< path of the shard
  std::string key{};     ///< key of the sample; empty: a note about the shard
  std::uint64_t offset_bytes = error_location::unknown;   ///< offset in the shard; unknown: left out
  std::uint64_t position = error_location::unknown;       ///< position in the run's order; unknown: left out
  std::uint64_t epoch = error_location::unknown;          ///< epoch that met it; unknown: left out
  std::string stage{};    ///< stage that found the damage
  std::string reason{};   ///< what is wrong
};

/// A file of damaged samples, a line for each.
class quarantine_list {
 public:
  /// Opens the file and reads its entries. Makes the file and its folders if they are missing.
  explicit quarantine_list(const std::string& path);

  /// Appends an entry, and flushes it to the disk. Returns false, and writes nothing, if the list has the sample.
  bool add(const damaged_sample& sample);

  /// Returns the number of samples and notes in the list.
  std::uint64_t size() const noexcept { return entries_.size(); }
  /// Returns the path of the file.
  const std::string& path() const noexcept { return file_.path(); }

 private:
  /// Returns the text by which the list knows an entry.
  static std::string identity(std::string_view shard, std::string_view key);

  void read_entries();

  detail::append_file file_;
  std::set<std::string> entries_;
};

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/quarantine_list.inl>
#endif
