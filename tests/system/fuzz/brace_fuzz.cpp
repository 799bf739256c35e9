// A libFuzzer target: braces in shard patterns, against a slow expander that first parses the pattern into a tree.
// fuzz.py builds and runs it.
#include <millrace/sources/list/brace_expansion.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
__extension__ using wide = __int128;

struct refused {};

constexpr std::size_t max_results = 100;

using names = std::vector<std::string>;

/// A character, or a group: its comma-separated alternatives, each a list of these.
struct part {
  std::string plain{};      // without the backslash
  bool escaped = false, group = false;
  std::vector<std::vector<part>> alternatives{};
};

std::vector<part> parse(std::string_view text, std::size_t& at, int depth, char& ended_by) {
  std::vector<part> parts;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      parts.push_back({.plain = std::string(1, text[++at]), .escaped = true});
    } else if (c == '{') {
      if (depth == 64) throw refused();
      part group{.group = true};
      do {
        ++at;
        group.alternatives.push_back(parse(text, at, depth + 1, ended_by));
      } while (ended_by == ',');
      if (ended_by != '}') throw refused();
      parts.push_back(std::move(group));
    } else if (c == '}' || (c == ',' && depth > 0)) {
      if (depth == 0) throw refused();
      ended_by = c;
      return parts;
    } else {
      parts.push_back({.plain = std::string(1, c)});
    }
  }
  ended_by = '\0';
  if (depth > 0) throw refused();
  return parts;
}

bool is_number(const std::string& s) {
  const std::size_t from = s.starts_with('-') ? 1 : 0;
  return s.size() > from && s.find_first_not_of("0123456789", from) == std::string::npos;
}

wide number(const std::string& s) {
  wide value = 0;
  for (const char c : s) {
    if (c == '-') continue;
    value = 10 * value + (c - '0');
    if (value > wide{1} << 64) throw refused();
  }
  if (s[0] == '-') value = -value;
  if (value >= wide{1} << 63 || value < -(wide{1} << 63)) throw refused();
  return value;
}

std::string digits(wide value, std::size_t width) {
  std::string text;
  for (wide left = value < 0 ? -value : value; left > 0 || text.empty(); left /= 10)
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(left % 10)));
  while (text.size() + (value < 0) < width) text.insert(text.begin(), '0');
  return (value < 0 ? "-" : "") + text;
}

/// The values of "a..b" or "a..b..c".
std::optional<names> range(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return std::nullopt;
  const std::string first = text.substr(0, dots), rest = text.substr(dots + 2);
  const std::size_t more = rest.find("..");
  const std::string last = rest.substr(0, more), step = more == std::string::npos ? "1" : rest.substr(more + 2);
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const auto letter = [&](const std::string& s) { return s.size() == 1 && letters.find(s) != std::string::npos; };
  const bool numbers = is_number(first) && is_number(last);
  if (!is_number(step) || (!numbers && (!letter(first) || !letter(last)))) return std::nullopt;
  const auto leading_zero = [](std::string s) {
    if (s[0] == '-') s.erase(0, 1);
    return s.size() > 1 && s[0] == '0';
  };
  const wide from = numbers ? number(first) : static_cast<wide>(letters.find(first));
  const wide to = numbers ? number(last) : static_cast<wide>(letters.find(last));
  wide by = number(step);
  if (by < 0) by = -by;
  if (by == 0) by = 1;
  const std::size_t width = numbers && (leading_zero(first) || leading_zero(last))
                                ? std::max(first.size(), last.size()) : 0;
  names values;
  for (wide at = from; from <= to ? at <= to : at >= to; at += from <= to ? by : -by) {
    if (values.size() == max_results) throw refused();
    values.push_back(numbers ? digits(at, width) : std::string(1, letters[static_cast<std::size_t>(at)]));
  }
  return values;
}

names expand(const std::vector<part>& parts);

names choices(const part& group) {
  names all;
  if (group.alternatives.size() > 1) {
    for (const auto& one : group.alternatives)
      for (auto& name : expand(one)) all.push_back(std::move(name));
    return all;
  }
  std::string plain;   // empty if there is an escaped character or a group, which excludes a range
  bool may_be_range = true;
  for (const part& p : group.alternatives[0]) {
    may_be_range = may_be_range && !p.group && !p.escaped;
    plain += p.plain;
  }
  if (may_be_range)
    if (auto values = range(plain)) return *values;
  for (auto& name : expand(group.alternatives[0])) all.push_back("{" + name + "}");
  return all;
}

names expand(const std::vector<part>& parts) {
  names results(1);
  for (const part& p : parts) {
    const names next = p.group ? choices(p) : names{p.plain};
    if (next.size() * results.size() > max_results) throw refused();
    names longer;
    for (const auto& a : results)
      for (const auto& b : next) longer.push_back(a + b);
    results = std::move(longer);
  }
  return results;
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* pattern :
       {"train-{000..014}.tar", "{a,b}/{0..4..2}.tar", "a{b,c{d,e},}f", "{9..-3..4}", "{-05..10}", "{a..f..2}",
        "{Y..b}",
        "{}", "{a}", "\\{a,b\\}", "{a\\,b,c}", "{1..2}{3..4}{x,y}", "{z..a..-3}", "{{1..3},{a..c}}", "a\\",
        "{1..{2,3}}",
        "{0..9223372036854775807..9223372036854775807}", "{-9223372036854775808..9223372036854775807}", "{,}",
        "{a..b..c}",
        "{x..y..99999999999999999999}", "{foo..bar..99999999999999999999}", "{1..3..0}", "}", "{", "{{{a,b}}}",
        "{001..3}", "{1..99999999999999999999}", "{..}", "{1....3}", "{+1..3}"})
    seeds.add(std::string_view(pattern));
}

void slow::check(std::span<const std::byte> input, draw) {
  const std::string_view pattern = text_of(input);
  std::optional<names> ours, expected;
  std::string refusal;
  try {
    ours = mr::detail::expand_braces(pattern, max_results);
  } catch (const mr::setup_error& e) {
    refusal = e.message();
  }
  try {
    std::size_t at = 0;
    char ended_by = '\0';
    expected = expand(parse(pattern, at, 0, ended_by));
  } catch (const refused&) {
  }
  counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value())
    fail(ours ? "accepted, against the rules" : "refused, against the rules: " + refusal);
  if (ours != expected) fail("other names: " + std::to_string(ours->size()) + ", first " + ours->front() +
                              "; expected " + std::to_string(expected->size()) + ", first " + expected->front());
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"{", "}", "{", "}", ",", "..", "\\", "-", "a", "Z", "00", "-05", "{1..3}", "{a,b}"})
      .change(data, size, max_size, 0);
}
