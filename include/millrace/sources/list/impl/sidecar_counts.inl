// Definitions for sidecar_counts.hpp.
#pragma once

#include <millrace/sources/list/sidecar_counts.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/json_objects.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/sources/list/shard_list.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::optional<std::string> small_sidecar_file(const storage& at, const std::string& path,
                                                              std::size_t max_bytes) {
  if (!at.is_local()) return front_of_stored_file(at, path, max_bytes);
  struct ::stat status{};   // a pipe of this name would block the read
  if (posix_files::stat_path(path.c_str(), status) == -1 || !S_ISREG(status.st_mode)) return std::nullopt;
  file_source source(path);
  std::string text(std::size_t{64} << 10, '\0');
  for (std::size_t filled = 0;;) {
    filled += read_fully(source, filled, std::as_writable_bytes(std::span(text).subspan(filled)));
    if (filled < text.size() || filled >= max_bytes) {
      text.resize(filled);
      return text;
    }
    text.resize(text.size() * 2);
  }
}

MILLRACE_INLINE std::optional<std::string> sidecar_json_file(const storage& at, const std::string& path) {
  constexpr std::uint64_t max_bytes = 64 << 20;
  if (const std::uint64_t size_bytes = find_file_stamp(at, path).value_or(file_stamp()).size_bytes;
      size_bytes > max_bytes)
    throw data_error("the JSON file is too large: got " + std::to_string(size_bytes) + " bytes, expected at most " +
                         std::to_string(max_bytes),
                     "Remove the file, or write the index again",
                     {.stage = "index", .shard = path, .key = {}, .offset_bytes = 0});
  return small_sidecar_file(at, path);
}

MILLRACE_INLINE std::uint64_t count_of_dali_index(std::string_view text, const std::string& path) {
  const std::string_view line = text.substr(0, text.find('\n'));
  std::uint64_t count = 0;
  if (line.starts_with("v1.")) {
    const std::size_t blank = std::min(line.find(' '), line.size() - 1);
    const auto read = std::from_chars(line.data() + blank + 1, line.data() + line.size(), count);
    if (read.ec == std::errc() && (read.ptr == line.data() + line.size() || *read.ptr == '\r')) return count;
  }
  throw data_error("the file is not a DALI index: expected \"v1.2\" and the number of samples in its first line",
                   "Remove the file, or write the index again",
                   {.stage = "index", .shard = path, .key = {}, .offset_bytes = 0});
}

MILLRACE_INLINE void counts_by_name::add(std::string_view name, std::uint64_t count) {
  const auto [entry, added] = counts_.try_emplace(std::string(name), count);
  if (!added && entry->second != count) entry->second = std::nullopt;
}

MILLRACE_INLINE const std::optional<std::uint64_t>* counts_by_name::find(std::string_view name) const {
  const auto entry = counts_.find(name);
  return entry == counts_.end() ? nullptr : &entry->second;
}

MILLRACE_INLINE counts_by_name shard_counts_of_sizes(std::string_view text, const std::string& path) {
  counts_by_name counts;
  json_objects(text, path).for_each([&](const std::vector<json_objects::member>& members) {
    for (const auto& m : members)
      if (m.number) counts.add(name_in_folder(m.key), *m.number);
  });
  return counts;
}

MILLRACE_INLINE counts_by_name counts_of_wids(std::string_view text, const std::string& path) {
  counts_by_name counts;
  json_objects(text, path).for_each([&](const std::vector<json_objects::member>& members) {
    const std::string* url = nullptr;
    const std::uint64_t* samples = nullptr;
    for (const auto& m : members) {
      if (m.key == "url") url = &m.text;
      if (m.key == "nsamples" && m.number) samples = &*m.number;
    }
    if (url && samples) counts.add(name_in_folder(*url), *samples);
  });
  return counts;
}

}   // namespace detail

MILLRACE_INLINE std::vector<std::optional<std::uint64_t>> sidecar_counts(std::span<const std::string> shards,
                                                                         const sidecar_counts_options& options) {
  detail::counts_by_name wids;
  if (!options.wids_file.empty()) {
    const auto text = detail::sidecar_json_file(options.storage, options.wids_file);
    if (!text)
      throw io_error("the file does not exist", "Check its name", {.stage = "index", .shard = options.wids_file});
    wids = detail::counts_of_wids(*text, options.wids_file);
  }
  std::map<std::string, detail::counts_by_name, std::less<>> sizes;   // by folder
  std::vector<std::optional<std::uint64_t>> counts;
  for (const std::string& shard : shards) {
    const std::string_view name = detail::name_in_folder(shard);
    const std::string folder = shard.substr(0, shard.size() - name.size());
    if (!sizes.contains(folder)) {
      const auto text = detail::sidecar_json_file(options.storage, folder + "sizes.json");
      sizes.emplace(folder,
                    text ? detail::shard_counts_of_sizes(*text, folder + "sizes.json") : detail::counts_by_name());
    }
    detail::counts_by_name candidates;
    const std::string dali_path = folder + std::string(name.substr(0, name.find('.'))) + ".idx";
    if (const auto text = detail::small_sidecar_file(options.storage, dali_path, 4096))
      candidates.add(name, detail::count_of_dali_index(*text, dali_path));
    bool is_ambiguous = false;
    for (const auto* source : {&wids, &sizes.find(folder)->second})
      if (const auto* count = source->find(name)) {
        if (*count) candidates.add(name, **count);
        else is_ambiguous = true;
      }
    const auto* count = candidates.find(name);
    counts.push_back(count && !is_ambiguous ? *count : std::nullopt);
  }
  return counts;
}

}}   // namespace millrace
