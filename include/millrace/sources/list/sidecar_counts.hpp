// Reads the number of samples in each shard from files of other tools. Use it for shards that cannot have a Millrace
// index.
//
//   auto counts = mr::sidecar_counts(shards);                                  // one std::optional for each shard
//   auto more = mr::sidecar_counts(shards, {.wids_file = "shardindex.json"});
//   if (counts[k]) plan_with(*counts[k]);              // later, compare it with the number of samples read
//
// Searches next to each shard for DALI's "<name up to its first dot>.idx" and for OpenCLIP's "sizes.json". If
// `wids_file` is set, the function also reads the members "url" and "nsamples" of that JSON file. If two files state
// different numbers for a shard, its number is unknown. The offsets in these files are not used.
// Errors: data_error with file and offset for a file with invalid content; io_error for a file that cannot be read.
// Threads: any thread; no shared state.
// Formats: DALI, "Creating an Index" (wds2idx); webdataset/wids, "wids-shard-index-v1"; JSON as in RFC 8259.
#pragma once

#include <millrace/io/file/storage.hpp>

#include <charconv>
#include <cstdint>
#include <functional>
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
  std::string wids_file{};       ///< path of a wids index; if empty, none is read
  millrace::storage storage{};   ///< storage of the shards, and of the files next to them
};

namespace detail {

inline std::string_view name_in_folder(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

/// Returns the content of a file, or nothing if it is not a regular file. If the file has more than `max_bytes` bytes,
/// returns at least the first `max_bytes` of them.
std::optional<std::string> small_sidecar_file(const storage& at, const std::string& path,
                                              std::size_t max_bytes = std::size_t{64} << 20);

/// Returns the content of a JSON file, or nothing if it is not a regular file. Throws data_error if the file is larger
/// than 64 MiB.
std::optional<std::string> sidecar_json_file(const storage& at, const std::string& path);

/// Returns the number of samples of a DALI index. The first line of the index is "v1.2 <samples>".
std::uint64_t count_of_dali_index(std::string_view text, const std::string& path);

/// Stores numbers of samples by file name. If a name gets two different numbers, its number is unknown.
class counts_by_name {
 public:
  void add(std::string_view name, std::uint64_t count);
  const std::optional<std::uint64_t>* find(std::string_view name) const;

 private:
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> counts_;
};

counts_by_name shard_counts_of_sizes(std::string_view text, const std::string& path);

counts_by_name counts_of_wids(std::string_view text, const std::string& path);

}   // namespace detail

/// Returns the number of samples in each shard, or nothing for a shard whose number is unknown. Throws data_error if a
/// file is malformed, and io_error if the wids file does not exist or a file cannot be read.
std::vector<std::optional<std::uint64_t>> sidecar_counts(std::span<const std::string> shards,
                                                         const sidecar_counts_options& options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/list/impl/sidecar_counts.inl>
#endif
