// Definitions for keys_from.hpp.
#pragma once

#include <millrace/sources/keys_from.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/sources/list/listed_key.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace key_files {

/// Returns whether the name of a file shows that the file contains JSON lines.
MILLRACE_INLINE bool has_json(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> compressions{".gz", ".zst", ".bz2", ".xz", ".lz4"};
  for (const std::string_view end : compressions)
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

MILLRACE_INLINE error_location location_of(const line& of) {
  return {.stage = "keys_from",
          .shard = std::string(of.file()),
          .key = "line " + std::to_string(of.number()),
          .offset_bytes = of.offset_bytes()};
}

}   // namespace key_files

MILLRACE_INLINE bool is_cut_entry(const line& last, std::uint64_t file_bytes) noexcept {
  constexpr std::string_view start = "{\"shard\": \"";   // start of each line that a quarantine_list writes
  const std::string_view text = last.text();
  return last.offset_bytes() + text.size() == file_bytes &&
         text.substr(0, start.size()) == start.substr(0, text.size()) && !is_complete_json_line(text);
}

MILLRACE_INLINE key_list read_keys(const std::vector<std::string>& files, const storage& at) {
  block_pool pool;
  auto keys = std::make_shared<key_table>();
  for (const std::string& file : files) {
    const bool json = key_files::has_json(file);
    auto source = open_file(at, file);
    const std::uint64_t file_bytes = size_of_open(at, *source);
    line_reader lines(std::move(source), pool, {.skip_empty = true, .check_utf8 = false});
    while (const auto next = lines.next()) {
      if (!json) {
        keys->add(next->text(), {});
      } else if (is_cut_entry(*next, file_bytes)) {
        break;
      } else {
        const listed_key listed = read_listed_key(next->text(), key_files::location_of(*next));
        if (!listed.key.empty()) keys->add(listed.key, listed.shard);
      }
    }
  }
  keys->sort();
  return key_list(std::move(keys));
}

}}}   // namespace millrace::detail
