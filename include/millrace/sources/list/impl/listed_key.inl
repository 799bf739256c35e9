// Definitions for listed_key.hpp.
#pragma once

#include <millrace/sources/list/listed_key.hpp>

#include <millrace/base/json_objects.hpp>

#include <charconv>
#include <optional>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace key_files {

[[noreturn]] MILLRACE_RARE void fail(const error_location& of, const std::string& problem) {
  throw data_error(problem, "Write each line like {\"shard\": \"train-000.tar\", \"key\": \"n01440764/0017\"}", of);
}

MILLRACE_RARE std::string bytes_of_hex(const error_location& of, const std::string& member, std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* const at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2) fail(of, "its \"" + member + "\" has an invalid digit");
    bytes[i] = static_cast<char>(value);
  }
  if (digits.size() % 2 != 0) fail(of, "its \"" + member + "\" has an odd number of digits");
  return bytes;
}

/// The members of a line's JSON object that contain a key or a shard.
struct members_of_line {
  std::optional<std::string> key{}, key_digits{}, shard{}, shard_digits{};
  bool null_key = false;

  void read(const json_objects::member& m, const error_location& of) {
    std::optional<std::string>* const to = m.key == "key"         ? &key
                                           : m.key == "key_hex"   ? &key_digits
                                           : m.key == "shard"     ? &shard
                                           : m.key == "shard_hex" ? &shard_digits
                                                                  : nullptr;
    if (!to) return;
    if (m.is_string) *to = m.text;
    else if (!m.is_null) fail(of, "its \"" + m.key + "\" is not a string");
    else null_key |= m.key == "key";
  }
};

}   // namespace key_files

MILLRACE_RARE listed_key read_listed_key(std::string_view text, const error_location& of) {
  std::vector<json_objects::member> members;
  try {
    // for_each() visits the object of the line last, after the objects inside it.
    json_objects(text, of.shard).for_each([&](const std::vector<json_objects::member>& m) { members = m; });
  } catch (const data_error&) {
    key_files::fail(of, "the line is not a JSON object");
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') key_files::fail(of, "the line is not a JSON object");
  key_files::members_of_line object;
  for (const json_objects::member& m : members) object.read(m, of);
  listed_key listed;
  if (object.shard_digits) listed.shard = key_files::bytes_of_hex(of, "shard_hex", *object.shard_digits);
  else if (object.shard) listed.shard = *object.shard;
  if (object.key_digits) listed.key = key_files::bytes_of_hex(of, "key_hex", *object.key_digits);
  else if (object.key) listed.key = *object.key;
  const bool is_note = object.null_key && !object.key_digits && object.shard;
  if (listed.key.empty() && !is_note) key_files::fail(of, "the line has no \"key\"");
  return listed;
}

}}}   // namespace millrace::detail
