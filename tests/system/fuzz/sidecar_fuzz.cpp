// A libFuzzer target: files of other tools that count samples. sizes.json and wids indexes must match a slow reader of
// RFC 8259, and the first line of a DALI index a separate parser. fuzz.py builds and runs it.
//
// The library's reader is more lenient than the RFC in two points: it accepts control characters in strings, and words
// of the characters of numbers. A surrogate without its other half represents itself.
#include <millrace/sources/list/sidecar_counts.hpp>

#include "fuzz_target.hpp"
#include "slow_json.hpp"
#include "text_mutator.hpp"

#include <map>
#include <optional>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using counts = std::map<std::string, std::optional<std::uint64_t>>;

std::optional<std::uint64_t> parse_field_integer(const std::string& digits) {
  __extension__ unsigned __int128 value = 0;
  if (digits.empty()) return std::nullopt;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<unsigned>(c - '0');
    if (value > ~std::uint64_t{0}) return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

void add(counts& all, const std::string& path, std::uint64_t count) {
  const auto [entry, added] = all.emplace(path.substr(path.rfind('/') + 1), count);
  if (!added && entry->second != count) entry->second.reset();
}

void count_members(counts& all, const slow::json_value& v, bool wids) {
  for (const auto& member : v.members) count_members(all, member, wids);
  if (v.what != slow::json_value::kind::object) return;
  std::optional<std::string> url;
  std::optional<std::uint64_t> samples;
  for (std::size_t i = 0; i < v.members.size(); ++i) {
    const slow::json_value& member = v.members[i];
    const std::string& key = v.keys[i];
    const auto number = member.what == slow::json_value::kind::word ? parse_field_integer(member.text) : std::nullopt;
    if (!wids && number) add(all, key, *number);
    if (key == "url") url = member.what == slow::json_value::kind::string ? member.text : "";
    if (key == "nsamples" && number) samples = number;
  }
  if (wids && url && samples) add(all, *url, *samples);
}

void check_json(std::string_view text, bool wids) {
  const auto ours_of = wids ? mr::detail::counts_of_wids : mr::detail::shard_counts_of_sizes;
  std::optional<mr::detail::counts_by_name> ours;
  try {
    ours = ours_of(text, "input");
  } catch (const mr::data_error& e) {
    slow::expect(e.where().offset_bytes <= text.size(), "an error outside of the file");
  }
  slow::counters().count(ours.has_value());
  const auto expected = slow::json_reader(text, {.any_word = true, .any_character = true, .join_surrogates = true,
                                                 .lone_surrogates = true}).document();
  if (ours.has_value() != expected.has_value()) slow::fail(ours ? "accepted, but not JSON" : "refused, but JSON");
  if (!ours) return;
  counts all;
  count_members(all, *expected, wids);
  for (const auto& [name, count] : all) {
    const auto* const got = ours->find(name);
    if (!got || *got != count) slow::fail("another count of " + mr::printable(name));
  }
}

void check_dali(std::string_view text) {
  std::optional<std::uint64_t> ours, expected;
  try {
    ours = mr::detail::count_of_dali_index(text, "input");
  } catch (const mr::data_error&) {
  }
  slow::counters().count(ours.has_value());
  const std::string line(text.substr(0, text.find('\n')));
  if (const std::size_t blank = line.find(' '); line.substr(0, 3) == "v1." && blank != std::string::npos) {
    std::string digits = line.substr(blank + 1);
    digits.resize(std::min(digits.size(), digits.find('\r')));
    expected = parse_field_integer(digits);
  }
  if (ours != expected) slow::fail("a DALI index counts " + std::to_string(ours.value_or(0)) + ", expected " +
                                    std::to_string(expected.value_or(0)));
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* text :
       {R"({"train-000.tar": 10, "a/train-001.tar": 0, "train-001.tar": 1, "x": -1, "y": 1.5e3, "z": [1, {"w": 2}]})",
        R"({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "a/0.tar", "nsamples": 7}, {"url": "1.tar"}]})",
        R"([true, false, null, "\u00e9\n\"\\\/", {}, [], ""])", R"({"a": 18446744073709551616, "b": 007})", " 1 ",
        R"({"url": 5, "nsamples": 3})", R"({"url": "x", "url": "y", "nsamples": "3", "nsamples": 4})",
        "[[[[[[[[1]]]]]]]]"})
    for (const char knob : {'\0', '\1'}) seeds.add(std::string(1, knob) + text);
  for (const char* text :
       {"v1.2 12\njpg 0 1\n", "v1.1 0\r\n", "v1.2", "v1.2 18446744073709551615", "v1.2  3\n", "v2 3\n"})
    seeds.add(std::string("\3") + text);
  for (const std::size_t deep : {64, 65})
    seeds.add(std::string(1, '\0') + std::string(deep, '[') + "1" + std::string(deep, ']'));
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  const std::string_view text = text_of(input);
  if (knob % 4 == 3) check_dali(text);
  else check_json(text, knob % 2 != 0);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "[", "]", "\"", ",", ":", "\"url\"", "\"nsamples\"", "\\u00ff", "\\", "null",
                             "true", "1e5", "-", "v1.2 ", "\"a\":1", "\"a/b\""})
      .change(data, size, max_size, 1);
}
