// A libFuzzer target: set indexes, and searches in them, against a slow reader. fuzz.py builds and runs it.
//
// The first byte of an input selects whether the number of shards and the checksum are repaired.
#include <millrace/io/index/format/set_index.hpp>

#include <millrace/base/crc32c.hpp>
#include <millrace/base/text.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using mr::detail::set_index;
using mr::detail::set_index_shard;
using slow::split;
using texts = std::vector<std::string>;

const std::string mark = "millrace set index 1\n";

bool is_of(const std::string& text, const char* characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string::npos;
}

std::optional<std::uint64_t> number_of(const std::string& text, std::uint64_t limit) {
  if (!is_of(text, "0123456789") || text.size() > 20 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  __extension__ unsigned __int128 value = 0;
  for (const char c : text) value = 10 * value + static_cast<unsigned>(c - '0');
  return value <= limit ? std::optional(static_cast<std::uint64_t>(value)) : std::nullopt;
}

std::optional<std::string> unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte <= ' ' || byte > '~') return std::nullopt;
    if (byte != '%') {
      plain += text[i];
      continue;
    }
    const std::string digits = text.substr(i + 1, 2);
    if (digits.size() != 2 || !is_of(digits, "0123456789abcdef")) return std::nullopt;
    const auto value = static_cast<unsigned char>(std::stoi(digits, nullptr, 16));
    if (value > ' ' && value <= '~' && value != '%') return std::nullopt;   // such a byte is written as it is
    plain += static_cast<char>(value);
    i += 2;
  }
  return plain.empty() ? std::nullopt : std::optional(plain);
}

std::optional<set_index_shard> shard_of(const std::string& line) {
  const texts words = split(line, ' ');
  if (words.size() != 7) return std::nullopt;
  set_index_shard s;
  const auto size = number_of(words[0], std::uint64_t{1} << 41);
  if (!size) return std::nullopt;
  const auto samples = number_of(words[1], std::min<std::uint64_t>(*size / 512, 0xfffffffe));
  const auto index_bytes = number_of(words[3], *size + 1'048'576);
  if (!samples || !index_bytes || words[2].size() != 16 || !is_of(words[2], "0123456789abcdef")) return std::nullopt;
  if (words[4] != "marked" && words[4] != "unmarked") return std::nullopt;
  const auto version = words[5] == "-" ? std::string() : words[5] == "%2d" ? std::string("-") : unescaped(words[5]);
  const auto name = unescaped(words[6]);
  if (!version || !name) return std::nullopt;
  return set_index_shard{*name,        *size,
                         *samples,     std::stoull(words[2], nullptr, 16),
                         *index_bytes, words[4] == "unmarked",
                         *version};
}

/// The lines up to the last, which begins with "end ". The rest may be damaged.
std::string body_of(const std::string& text) {
  std::string body = mark;
  for (const std::string& line : split(text.substr(std::min(text.size(), mark.size())), '\n')) {
    if (line.starts_with("end ") || body.size() + line.size() + 1 > text.size()) break;
    body += line + "\n";
  }
  return body;
}

std::string end_of(const std::string& body) {
  const auto lines = static_cast<std::size_t>(std::count(body.begin(), body.end(), '\n')) - 1;
  return "end " + std::to_string(lines) + " " + mr::detail::hex(mr::crc32c(mr::detail::bytes_of(body)), 8) + "\n";
}

std::optional<std::vector<set_index_shard>> read_slowly(const std::string& text) {
  if (!text.starts_with(mark)) return std::nullopt;
  const std::string body = body_of(text);
  if (text != body + end_of(body)) return std::nullopt;
  std::vector<set_index_shard> shards;
  texts lines = split(body.substr(mark.size()), '\n');
  lines.pop_back();
  for (const std::string& line : lines) {
    const auto shard = shard_of(line);
    if (!shard || (!shards.empty() && shards.back().name >= shard->name)) return std::nullopt;
    shards.push_back(*shard);
  }
  return shards;
}

/// The shard whose name is `name`, or the longest part after one of its slashes.
std::optional<set_index_shard> find_slowly(const std::vector<set_index_shard>& shards, std::string name) {
  for (;;) {
    for (const set_index_shard& s : shards)
      if (s.name == name) return s;
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) return std::nullopt;
    name.erase(0, slash + 1);
  }
}

std::string valid_input(mr::rng& d) {
  static const char* const names[] = {"a", "a/b.tar", "b.tar", "c d%", "s3://x/a/b.tar", "/", "-", "ä", "end"};
  static const char* const versions[] = {"", "-", "\"etag\"", "1 2", "%"};
  std::vector<set_index_shard> shards;
  for (const char* name : names)
    if (d.chance(0.3))
      shards.push_back({name, 512 * d.below(9), 0, d.below(99), d.below(2'000), d.chance(0.5), versions[d.below(5)]});
  for (set_index_shard& s : shards) s.samples = d.below(s.size_bytes / 512 + 1);
  return std::string(1, static_cast<char>(d.below(4))) + set_index(shards).text();
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 40; ++i) seeds.add(valid_input(d));
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const bool is_repaired = take_knob(input) % 4 > 0;
  std::string text(text_of(input));
  if (is_repaired) text = body_of(text) + end_of(body_of(text));
  const auto expected = read_slowly(text);
  std::optional<set_index> ours;
  try {
    ours = set_index::parse(text, "x.millrace-index");
  } catch (const mr::data_error&) {
  }
  counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value())
    fail(ours ? "an invalid set index was accepted" : "a set index was refused");
  if (!ours) return;
  expect(ours->shards() == *expected, "other shards");
  expect(set_index(*expected).text() == text, "another text");
  std::size_t nearby = 0;
  for (const set_index_shard& s : *expected)
    for (const std::string& name : {s.name, "x/" + s.name, s.name.substr(choose.below(s.name.size()))}) {
      const auto match = find_slowly(*expected, name);
      expect(ours->find(name) == match, "another shard of a name");
      expect(ours->find_from(nearby, name) == match, "another shard of a name near the last");
    }
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.3)) size = slow::text_mutator::restart_with(valid_input(d), data, max_size);
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"millrace set index 1\n", "end ", "marked", "unmarked", " ", "\n", "%", "%20", "%2d", "-",
                             "/", "0", "512", "0123456789abcdef", "2199023255552"})
      .change(data, size, max_size, 1);
}
