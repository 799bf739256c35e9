// A libFuzzer target: quarantine lists. The library must accept the same lines as a slow reader of RFC 8259. A file
// that can be opened has an entry for each line, accepts a new one, and returns all of them, also to keys_from().
// fuzz.py builds and runs it.
//
// The first byte of the input selects whether the rest is a line or a file.
#include <millrace/run/quarantine_list.hpp>
#include <millrace/sources/keys_from.hpp>

#include "fuzz_target.hpp"
#include "slow_json.hpp"
#include "text_mutator.hpp"

#include <unistd.h>

#include <optional>
#include <set>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using slow::json_value;

/// The entry of a line: a shard and a key. A note about the shard has no key.
using entry = std::pair<std::string, std::string>;

std::optional<std::string> bytes_of(const std::string& digits) {
  std::string bytes;
  if (digits.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t value = std::string("0123456789abcdef").find(static_cast<char>(std::tolower(digits[i])));
    if (value == std::string::npos) return std::nullopt;
    if (i % 2 == 0) bytes += static_cast<char>(value << 4);
    else bytes.back() = static_cast<char>(static_cast<unsigned char>(bytes.back()) | value);
  }
  return bytes;
}

/// The entry of a line, as documented in keys_from.hpp; nothing if the line must be refused.
std::optional<entry> entry_of(std::string_view line) {
  const auto document = slow::json_reader(line, {.any_word = true, .any_character = true, .join_surrogates = true,
                                                 .lone_surrogates = true}).document();
  if (!document || document->what != json_value::kind::object) return std::nullopt;
  std::optional<std::string> key, key_digits, shard, shard_digits;
  bool null_key = false;
  for (std::size_t i = 0; i < document->members.size(); ++i) {
    const std::string& name = document->keys[i];
    const json_value& value = document->members[i];
    auto* const to = name == "key" ? &key : name == "key_hex" ? &key_digits : name == "shard" ? &shard
                     : name == "shard_hex" ? &shard_digits : nullptr;
    if (!to) continue;
    if (value.what == json_value::kind::string) *to = value.text;
    else if (value.what != json_value::kind::word || value.text != "null") return std::nullopt;
    else null_key |= name == "key";
  }
  const bool is_note = null_key && !key_digits && shard;
  if (shard_digits && !(shard = bytes_of(*shard_digits))) return std::nullopt;
  if (key_digits && !(key = bytes_of(*key_digits))) return std::nullopt;
  if (key.value_or("").empty() && !is_note) return std::nullopt;
  const std::string path = shard.value_or(""), name = path.substr(path.rfind('/') + 1);
  return entry(name.empty() ? path : name, key.value_or(""));   // a folder is not a shard
}

void check_line(std::string_view line) {
  std::optional<entry> ours;
  try {
    const mr::detail::listed_key listed = mr::detail::read_listed_key(line, {.shard = "input"});
    const std::string name = listed.shard.substr(listed.shard.rfind('/') + 1);
    ours = entry(name.empty() ? listed.shard : name, listed.key);
  } catch (const mr::data_error&) {
  }
  slow::counters().count(ours.has_value());
  if (ours != entry_of(line)) slow::fail(ours ? "a line was accepted with another entry" : "a line was refused");
}

/// In memory if the system has such a folder, because the list flushes each entry.
const std::string& path() {
  static const std::string name = [] {
    const std::string folder = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ".";
    return folder + "/millrace-fuzz-" + std::to_string(::getpid()) + ".jsonl";
  }();
  static const bool removed_at_exit = std::atexit([] { std::filesystem::remove(name); }) == 0;
  static_cast<void>(removed_at_exit);
  return name;
}

std::string content() {
  std::ifstream file(path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The entries of the lines; nothing if one must be refused.
std::optional<std::set<entry>> entries_of(std::string_view text) {
  std::set<entry> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      const auto one = entry_of(text.substr(0, end));
      if (!one) return std::nullopt;
      all.insert(*one);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

void check_file(std::string_view text) {
  std::ofstream(path(), std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  const std::string_view lines = text.substr(0, text.rfind('\n') + 1), tail = text.substr(lines.size());
  std::uint64_t size = 0;
  bool accepted = false;
  try {
    mr::quarantine_list list(path());
    size = list.size();
    accepted = true;
  } catch (const mr::data_error&) {
  }
  slow::counters().count(accepted);
  const std::string repaired = content();
  const bool has_rest = repaired.size() > lines.size();
  if (repaired != (has_rest ? std::string(text) + "\n" : std::string(lines))) slow::fail("the file was changed");
  if (!has_rest && !tail.empty() && tail.front() == '{' && tail.back() == '}' && entry_of(tail))
    slow::fail("a complete line at the end was removed");
  const auto expected = entries_of(repaired);
  if (accepted != expected.has_value()) slow::fail(accepted ? "accepted with a bad line" : "refused without one");
  if (!accepted) return;
  slow::expect(size == expected->size(), "the list has another number of entries");

  const mr::damaged_sample fresh{.shard = "folder/new\xff.tar", .key = "k\n\"\x80", .reason = std::string(tail)};
  const bool listed = expected->contains({"new\xff.tar", fresh.key}) || expected->contains({"", fresh.key});
  {
    mr::quarantine_list list(path());
    slow::expect(list.add(fresh) == !listed, "the new entry is listed or not");
    slow::expect(!list.add(fresh), "an entry was added twice");
    slow::expect(list.size() == size + !listed, "the list has a wrong number of entries");
  }
  slow::expect(mr::quarantine_list(path()).size() == size + !listed, "entries were lost");
  const mr::key_list keys = mr::keys_from(path());
  for (const auto& [shard, key] : *expected)
    if (!key.empty()) slow::expect(keys.contains(key, shard.empty() ? "any.tar" : shard), "keys_from() lacks a key");
  slow::expect(keys.contains(fresh.key, fresh.shard), "keys_from() lacks the new key");
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  std::string all;
  for (const char* line :
       {R"({"shard": "a/train-000.tar", "key": "n01/7", "offset": 512, "position": 3, "epoch": 0, "stage": "map 1", )"
        R"("reason": "the JPEG is cut \"here\""})",
        R"({"shard": "s.tar", "key": null, "stage": "tar", "reason": "cut"})", R"({"key": "x"})",
        R"({"key": "\ufffd", "key_hex": "ff00", "shard": "\ufffd", "shard_hex": "80fe"})",
        R"({"key": "y", "shard": null})", R"([{"key": "a"}])", R"({"key": "a", "shard": {"key": "b"}})",
        R"({"key": 5})", R"({"key": ""})", "null"}) {
    seeds.add(std::string(1, '\0') + line);
    all += line;
    seeds.add("\1" + std::string(line) + "\n");
    if (all.size() < 350) {
      seeds.add("\1" + all);
      seeds.add("\1" + all + "\n" + all.substr(0, 40));
    }
    all += '\n';
  }
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  const std::string_view text = text_of(input);
  if (knob % 2 == 0) check_line(text);
  else if (!looks_compressed(text)) check_file(text);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "[", "]", "\"", ",", ":", "\"key\"", "\"key_hex\"", "\"shard\"", "\"shard_hex\"",
                             "\\u00ff", "\\", "null", "\n", "\r", "\"ff\"", "{\"key\":\"a\"}\n", "{\"shard\": \""})
      .change(data, size, max_size, 1);
}
