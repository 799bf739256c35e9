// Defines what keys_from.hpp declares.
#pragma once

#include <millrace/sources/keys_from.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
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

[[noreturn]] MILLRACE_INLINE void fail(const line& of, const char* problem) {
  throw data_error(problem, "A line of a list looks like {\"shard\": \"train-000.tar\", \"key\": \"n01440764/0017\"}",
                   {.stage = "keys_from", .shard = std::string(of.file()), .key = "line " + std::to_string(of.number()),
                    .offset_bytes = of.offset_bytes()});
}

MILLRACE_INLINE std::string bytes_of_hex(const line& of, std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* const at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) fail(of, "its \"key_hex\" has another digit");
    bytes[i] = static_cast<char>(value);
  }
  if (digits.size() % 2 != 0) fail(of, "its \"key_hex\" has an odd number of digits");
  return bytes;
}

MILLRACE_INLINE void add_json(key_table& keys, const line& of) {
  std::optional<std::string> key, digits;
  std::string shard;
  try {
    json_objects(of.text(), of.file()).for_each([&](const std::vector<json_objects::member>& members) {
      for (const json_objects::member& m : members) {
        if (m.number) continue;
        if (m.key == "key_hex") digits = m.text;
        else if (m.key == "key") key = m.text;
        else if (m.key == "shard") shard = m.text;
      }
    });
  } catch (const data_error&) {
    fail(of, "the line is not a JSON object");
  }
  if (digits) key = bytes_of_hex(of, *digits);
  if (!key || key->empty()) fail(of, "the line has no \"key\"");
  keys.add(*key, shard);
}

}  // namespace key_files

MILLRACE_INLINE key_list read_keys(const std::vector<std::string>& files) {
  block_pool pool;
  auto keys = std::make_shared<key_table>();
  for (const std::string& file : files) {
    const bool json = key_files::holds_json(file);
    line_reader lines(std::make_unique<file_source>(file), pool, {.skip_empty = true, .check_utf8 = false});
    while (const auto next = lines.next()) {
      if (json) key_files::add_json(*keys, *next);
      else keys->add(next->text(), {});
    }
  }
  keys->sort();
  return key_list(std::move(keys));
}

}}}  // namespace millrace::detail
