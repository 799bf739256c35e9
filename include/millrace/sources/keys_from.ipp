// Defines what keys_from.hpp declares.
#pragma once

#include <millrace/sources/keys_from.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/file/last_line.hpp>
#include <millrace/sources/json_objects.hpp>

#include <array>
#include <charconv>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace key_files {

/// Returns whether a file of that name holds JSON lines.
MILLRACE_INLINE bool holds_json(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> compressions{".gz", ".zst", ".bz2", ".xz", ".lz4"};
  for (const std::string_view end : compressions)
    if (name.ends_with(end)) {
      name.remove_suffix(end.size());
      break;
    }
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

[[noreturn]] MILLRACE_INLINE void fail(const line& of, const std::string& problem) {
  throw data_error(problem, "A line of a list looks like {\"shard\": \"train-000.tar\", \"key\": \"n01440764/0017\"}",
                   {.stage = "keys_from", .shard = std::string(of.file()), .key = "line " + std::to_string(of.number()),
                    .offset_bytes = of.offset_bytes()});
}

MILLRACE_INLINE std::string bytes_of_hex(const line& of, const std::string& member, std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* const at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) fail(of, "its \"" + member + "\" has another digit");
    bytes[i] = static_cast<char>(value);
  }
  if (digits.size() % 2 != 0) fail(of, "its \"" + member + "\" has an odd number of digits");
  return bytes;
}

/// The members of a line's object that say what it lists.
struct members_of_line {
  std::optional<std::string> key{}, key_digits{}, shard{}, shard_digits{};
  bool null_key = false;

  void take(const json_objects::member& m) {
    if (m.number) return;
    if (m.null) null_key |= m.key == "key";
    else if (m.key == "key") key = m.text;
    else if (m.key == "key_hex") key_digits = m.text;
    else if (m.key == "shard") shard = m.text;
    else if (m.key == "shard_hex") shard_digits = m.text;
  }
};

}  // namespace key_files

MILLRACE_INLINE listed_key read_listed_key(const line& of) {
  key_files::members_of_line found;
  try {
    json_objects(of.text(), of.file()).for_each([&](const std::vector<json_objects::member>& members) {
      found = {};   // the line's own object comes last, after those inside of it
      for (const json_objects::member& m : members) found.take(m);
    });
  } catch (const data_error&) {
    key_files::fail(of, "the line is not a JSON object");
  }
  listed_key listed;
  if (found.shard_digits) listed.shard = key_files::bytes_of_hex(of, "shard_hex", *found.shard_digits);
  else if (found.shard) listed.shard = *found.shard;
  if (found.key_digits) listed.key = key_files::bytes_of_hex(of, "key_hex", *found.key_digits);
  else if (found.key) listed.key = *found.key;
  const bool note = found.null_key && !found.key_digits && found.shard;
  if (listed.key.empty() && !note) key_files::fail(of, "the line has no \"key\"");
  return listed;
}

MILLRACE_INLINE bool is_cut_entry(const line& last, std::uint64_t file_bytes) noexcept {
  constexpr std::string_view start = "{\"shard\": \"";   // of each line that a quarantine_list writes
  const std::string_view text = last.text();
  return last.offset_bytes() + text.size() == file_bytes &&
         text.substr(0, start.size()) == start.substr(0, text.size()) && !is_whole_json_object(text);
}

MILLRACE_INLINE key_list read_keys(const std::vector<std::string>& files) {
  block_pool pool;
  auto keys = std::make_shared<key_table>();
  for (const std::string& file : files) {
    const bool json = key_files::holds_json(file);
    auto source = std::make_unique<file_source>(file);
    const std::uint64_t file_bytes = source->size_bytes();
    line_reader lines(std::move(source), pool, {.skip_empty = true, .check_utf8 = false});
    while (const auto next = lines.next()) {
      if (!json) {
        keys->add(next->text(), {});
      } else if (is_cut_entry(*next, file_bytes)) {
        break;
      } else if (const listed_key listed = read_listed_key(*next); !listed.key.empty()) {
        keys->add(listed.key, listed.shard);
      }
    }
  }
  keys->sort();
  return key_list(std::move(keys));
}

}}}  // namespace millrace::detail
