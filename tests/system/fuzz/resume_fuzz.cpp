// A libFuzzer target: the text of a resume point. parse_position() must accept the same texts as a slow reader of the
// documented format, and to_text() must return the same bytes. fuzz.py builds and runs it.
//
// The first byte of the input selects whether the checksum is repaired, so that mutations reach later checks.
#include <millrace/base/crc32c.hpp>
#include <millrace/item/position.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <limits>
#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

/// The words between spaces.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ') words.emplace_back();
    else words.back() += c;
  }
  return words;
}

/// The number of a word "name=123" in its only spelling; nothing if it is something else.
std::optional<std::uint64_t> decimal(const std::string& word, const std::string& name, std::uint64_t max) {
  if (word.size() <= name.size() + 1 || word.substr(0, name.size() + 1) != name + "=") return std::nullopt;
  const std::string digits = word.substr(name.size() + 1);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  __extension__ unsigned __int128 value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + static_cast<unsigned>(c - '0');
    if (value > max) return std::nullopt;
  }
  return static_cast<std::uint64_t>(value);
}

bool hexadecimal(const std::string& word, const std::string& name, std::size_t digits) {
  return word.size() == name.size() + 1 + digits && word.substr(0, name.size() + 1) == name + "=" &&
         word.find_first_not_of("0123456789abcdef", name.size() + 1) == std::string::npos;
}

/// Whether the text is a resume point as documented in position.hpp.
bool is_resume_point(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  constexpr std::uint64_t wide = std::numeric_limits<std::uint64_t>::max(), narrow = 0xffffffff;
  const std::vector<std::string> words = words_of(text);
  std::size_t at = 0;
  const auto next = [&]() -> const std::string& {
    static const std::string none;
    return at < words.size() ? words[at++] : none;
  };
  if (next() != "millrace") return false;
  const auto version = decimal(next(), "version", 8);
  if (!version || *version == 0) return false;
  const bool of_index = *version == 1 || *version == 6, packs = *version == 3 || *version == 5 || *version == 8;
  for (const char* name : {"seed", "epoch", "position"})
    if (!decimal(next(), name, wide)) return false;
  if (!decimal(next(), "lanes", narrow)) return false;
  for (const char* name : {"window", "global_batch", "epoch_batches"})
    if (!decimal(next(), name, wide)) return false;
  if (!decimal(next(), "drop_last", 1) || !hexadecimal(next(), "data", 16)) return false;
  if (*version >= 4 && !of_index ? !hexadecimal(next(), "times", 8) : !hexadecimal(next(), "digest", 16)) return false;
  if (!of_index) {
    for (const char* name : {"step", "pass", "place", "rows", "part", "first"})
      if (!decimal(next(), name, wide)) return false;
    for (const char* name : {"ranks", "rank"})
      if (!decimal(next(), name, narrow)) return false;
    if (packs && !decimal(next(), "held", wide)) return false;
  }
  const auto follows = [&](const char* name) { return at < words.size() && words[at].starts_with(name); };
  if (of_index && follows("choice=") && (follows("choice=0000000000000000") || !hexadecimal(next(), "choice", 16)))
    return false;
  if (follows("stride=") && decimal(next(), "stride", narrow).value_or(0) == 0) return false;
  if (!of_index && follows("packed_row=") && (decimal(next(), "packed_row", wide).value_or(0) == 0 ||
                                              decimal(next(), "open_rows", wide).value_or(0) == 0))
    return false;
  if (of_index && follows("shares=") && decimal(next(), "shares", narrow).value_or(0) < 2) return false;
  for (const std::string name : {"shards", "samples"})
    if (follows((name + "=").c_str()) && decimal(next(), name, wide).value_or(0) == 0) return false;
  const std::size_t last = text.rfind(" crc32c=");
  if (last == std::string_view::npos) return false;
  char sum[9];
  std::snprintf(sum, sizeof sum, "%08x", mr::crc32c(mr::detail::bytes_of(text.substr(0, last))));
  return next() == std::string("crc32c=") + sum && at == words.size();
}

std::string valid_input(mr::rng& d) {
  mr::position p;
  p.version = static_cast<std::uint32_t>(d.below(8) + 1);
  mr::detail::for_each_field(p, [&]<class T>(const mr::detail::position_field& field, T& member) {
    if (field.name != std::string_view("version"))
      member = static_cast<T>(std::min(d.chance(0.3) ? d.bits() : d.below(100), field.max));
  });
  if (d.chance(0.3) && p.has_index()) p.choice = d.bits();
  if (d.chance(0.3)) p.stride = static_cast<std::uint32_t>(d.chance(0.5) ? d.bits() : d.below(9));
  if (d.chance(0.3)) p.counts = {.shards = d.below(3), .samples = d.below(3)};
  if (d.chance(0.3) && !p.has_index()) p.packing = {.row = d.bits() | 1, .open_rows = d.below(9) + 1};
  if (d.chance(0.3)) p.share = {.digest = p.digest, .ranks = static_cast<std::uint32_t>(d.below(5))};
  return std::string(1, static_cast<char>(d.below(4))) + mr::to_text(p) + (d.chance(0.2) ? "\n" : "");
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  mr::rng d({.seed = 1});
  for (int i = 0; i < 60; ++i) seeds.add(valid_input(d));
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  std::string text(text_of(input));
  if (knob % 4 != 0) {
    text.resize(std::min(text.size(), text.rfind(" crc32c=")));
    char sum[20];
    std::snprintf(sum, sizeof sum, " crc32c=%08x", mr::crc32c(mr::detail::bytes_of(text)));
    text += sum;
    if (knob % 4 == 2) text += '\n';
  }
  const std::unique_ptr<char[]> exact(new char[text.size()]);
  std::copy(text.begin(), text.end(), exact.get());
  mr::position p;
  std::string refusal;
  try {
    p = mr::parse_position({exact.get(), text.size()});
  } catch (const mr::data_error& e) {
    refusal = e.message();
  }
  counters().count(refusal.empty());
  const bool right = is_resume_point(text);
  if (right != refusal.empty()) fail((right ? "refused though it is a resume point: " : "accepted: ") + refusal + text);
  if (!right) return;
  const std::string again = mr::to_text(p);
  if (text.ends_with('\n')) text.pop_back();
  if (again != text) fail("the text " + text + " is written as " + again);
  if (!(mr::parse_position(again) == p)) fail("another position than before: " + again);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.3)) size = slow::text_mutator::restart_with(valid_input(d), data, max_size);
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {" shares=2", " stride=3", " choice=0000000000000001", " held=3", " times=00000000",
                              " step=1", "=", " ", " packed_row=4", " open_rows=4", "ffffffffffffffff", "seed",
                             "rank", "\n"})
      .change(data, size, max_size, 1);
}
