// Definitions for shard_heads.hpp.
#pragma once

#include <millrace/io/index/set/shard_heads.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/file_list.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the content of a set index, or nothing if the file does not exist.
MILLRACE_RARE std::optional<std::string> text_of_set_index(const storage& at, const std::string& name) {
  constexpr std::size_t front_bytes = std::size_t{1} << 20;   // enough for ten thousand shards
  std::unique_ptr<byte_source> file;
  if (at.is_local()) file.reset(new file_source(name));
  else file = at->open_front(name, front_bytes);
  if (!file) return std::nullopt;
  const std::uint64_t bytes = size_of_open(at, *file);
  if (bytes > set_index::max_bytes)
    throw data_error("the set index is too large: got " + std::to_string(bytes) + " bytes, expected at most 256 MiB",
                     "Check that the file is a set index", {.stage = "index", .shard = name});
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(read_fully(*file, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

MILLRACE_RARE std::optional<set_index> load_heads_of_set(const name_list& shards, const storage& at,
                                                         const std::string& named) {
  if (!named.empty()) {
    auto text = text_of_set_index(at, named);
    if (text) return set_index::parse(std::move(*text), named);
    throw io_error("the storage lacks this set index", "Check its name, or write it with inspect --set-index",
                   {.stage = "index", .shard = named});
  }
  const std::string_view folder = shards.common_folder();
  if (at.is_local() || folder.empty()) return std::nullopt;
  const std::string path = std::string(folder) + std::string(set_index::default_name);
  std::optional<std::string> text;
  try {
    text = text_of_set_index(at, path);
  } catch (const io_error&) {   // some stores return an error for files that do not exist
  }
  // Web servers return an error page for unknown names. The page is ignored, because the user did not name this file.
  if (!text || !set_index::has_mark(*text)) return std::nullopt;
  return set_index::parse(std::move(*text), path);
}

/// Returns the head of a shard's index, from the description of the shard in a set index.
MILLRACE_RARE index_summary head_of(const set_index_shard& entry) {
  return {.state = index_file_state::good,
          .samples = static_cast<std::uint32_t>(entry.samples),
          .fingerprint = entry.fingerprint,
          .shard_is_complete = true,
          .without_end_marker = entry.without_end_marker,
          .of_set_index = true,
          .shard = {.size_bytes = entry.size_bytes},
          .index_bytes = entry.index_bytes};
}

/// Sets the size and time of a local shard in its head. Returns false if the shard does not exist.
MILLRACE_RARE bool identify_local_shard(const std::string& shard, index_summary& head) {
  shard_identity now;
  try {
    now = identify_shard(shard);
  } catch (const io_error&) {
    return false;
  }
  if (now.size_bytes != head.shard.size_bytes)
    throw data_error("the shard does not match the set index: got " + std::to_string(now.size_bytes) +
                         " bytes, expected " + std::to_string(head.shard.size_bytes),
                     "Write the set index again with inspect --set-index", {.stage = "index", .shard = shard});
  head.shard = now;
  return true;
}

MILLRACE_RARE shard_indexes find_shard_heads(const name_list& shards, const shard_heads_options& options) {
  const storage& at = options.build.files.storage;
  const auto set = load_heads_of_set(shards, at, options.set_index);
  // The index of each shard must be read, because it shows whether entry points must be built.
  if (!set || options.build.entries) return build_indexes(shards.strings(), options.build);
  shard_indexes all;
  all.indexes.resize(shards.size());
  all.heads.resize(shards.size());
  std::vector<std::string> others;
  std::vector<std::size_t> numbers;   // the positions of those shards in the list
  std::size_t nearby = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto entry = set->find_from(nearby, shards.view(i));
    if (entry) all.heads[i] = head_of(*entry);
    if (!entry || (at.is_local() && !identify_local_shard(shards[i], all.heads[i]))) {
      others.push_back(shards[i]);
      numbers.push_back(i);
      continue;
    }
    if (at.is_local()) continue;
    all.heads[i].entries_in_storage = true;   // if it has entry points, which the index shows
    const file_identity identity{.size_bytes = entry->size_bytes, .version = entry->version};
    all.heads[i].identified = !entry->version.empty();
    if (!all.heads[i].identified) continue;
    all.heads[i].shard.modified_ns = stamp_of(identity).changed;
    at->assume(shards[i], identity);
  }
  auto rest = build_indexes(others, options.build);
  for (std::size_t i = 0; i < others.size(); ++i) {
    all.indexes[numbers[i]] = std::move(rest.indexes[i]);
    all.heads[numbers[i]] = rest.heads[i];
  }
  all.counts = rest.counts;
  if (!at.is_local()) all.requests = rest.requests + 1;
  all.store_failure = std::move(rest.store_failure);
  for (const std::size_t i : rest.damaged) all.damaged.push_back(numbers[i]);
  for (const std::size_t i : rest.touched) all.touched.push_back(numbers[i]);
  return all;
}

MILLRACE_RARE set_index build_set_index(const std::vector<std::string>& shards, index_build_options options) {
  options.heads_only = true;
  const storage& at = options.files.storage;
  const shard_indexes built = build_indexes(shards, options);
  std::vector<std::string> versions(shards.size());
  if (!at.is_local())
    run_concurrently(shards.size(), 64, [&](std::size_t i) {
      const auto now = at->find(shards[i]);
      if (!now || now->size_bytes != built.heads[i].shard.size_bytes)
        throw data_error("the shard does not match its index: got " +
                             (now ? std::to_string(now->size_bytes) + " bytes" : std::string("no shard")) +
                             ", expected " + std::to_string(built.heads[i].shard.size_bytes) + " bytes",
                         "Remove the index next to the shard, or write the index again",
                         {.stage = "index", .shard = shards[i]});
      versions[i] = now->version;
    });
  const std::size_t folder = name_list(shards).common_folder().size();
  std::vector<set_index_shard> all;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const index_summary& head = built.heads[i];
    if (!head.shard_is_complete) continue;
    all.push_back({.name = shards[i].substr(folder),
                   .size_bytes = head.shard.size_bytes,
                   .samples = head.samples,
                   .fingerprint = head.fingerprint,
                   .index_bytes = head.index_bytes,
                   .without_end_marker = head.without_end_marker,
                   .version = std::move(versions[i])});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  all.erase(std::unique(all.begin(), all.end()), all.end());   // the list may contain a shard twice
  return set_index(std::move(all));
}

}}}   // namespace millrace::detail
