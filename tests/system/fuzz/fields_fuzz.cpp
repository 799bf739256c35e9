// A libFuzzer target: patterns of field names of a record, and lists of the images they match, against slow ones.
// fuzz.py builds and runs it. An input consists of lines: the patterns, then the names of the fields.
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/pnm/pnm.hpp>
#include <millrace/item/record_builder.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;
using slow::split;
using texts = std::vector<std::string>;

/// The text that '*' matches, by trying every length.
std::optional<std::string> part_of(const std::string& pattern, const std::string& name) {
  const texts around = split(pattern, '*');
  if (around.size() == 1) return pattern == name ? std::optional(name) : std::nullopt;
  for (std::size_t length = 0; length <= name.size(); ++length) {
    if (around[0].size() + length + around[1].size() != name.size()) continue;
    const std::string part = name.substr(std::min(around[0].size(), name.size()), length);
    if (around[0] + part + around[1] == name) return part;
  }
  return std::nullopt;
}

/// Numbers and single bytes, as texts of which the order is that of the parts: a number has its digits, without zeros
/// in front, after their count.
std::vector<std::pair<int, std::string>> sort_key(const std::string& text) {
  std::vector<std::pair<int, std::string>> key;
  for (std::size_t at = 0; at < text.size();) {
    std::string digits;
    const std::size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') digits += text[at++];
    if (at == begin) {
      key.emplace_back(static_cast<unsigned char>(text[at++]), "");
      continue;
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    std::string count = std::to_string(digits.size());
    key.emplace_back('0', std::string(9 - count.size(), '0') + count + digits);
  }
  return key;
}

/// The indexes of the fields; nothing if a pattern is invalid.
std::optional<std::vector<std::size_t>> match_slowly(const std::string& patterns, const texts& names, bool by_number) {
  const texts each = split(patterns, ';');
  for (const std::string& pattern : each)
    if (split(pattern, '*').size() > 2) return std::nullopt;
  std::vector<std::pair<std::vector<std::pair<int, std::string>>, std::size_t>> matches;
  for (std::size_t i = 0; i < names.size(); ++i)
    for (const std::string& pattern : each)
      if (const auto part = part_of(pattern, names[i])) {
        auto at = matches.end();   // insertion keeps the order of equal parts
        auto key = by_number ? sort_key(*part) : sort_key("");
        while (at != matches.begin() && key < std::prev(at)->first) --at;
        matches.emplace(at, std::move(key), i);
        break;
      }
  std::vector<std::size_t> order;
  for (const auto& match : matches) order.push_back(match.second);
  return order;
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* text :
       {"*.jpg\n10.jpg\n2.jpg\ntxt\njpg\n01.jpg\n1.jpg\n1.seg.jpg",
        "*.png;a9*.jpg;*\n3.png\na9b2.jpg\na9b10.jpg\n2.PNG", "jpg;txt\ntxt\njpg", "*.*\na.b", "*\n\n\n", "", ";\n\na",
        "page-*\npage-0\npage-00\npage-\npage-9z\npage-10a", "1*1.jpg\n1.jpg\n11.jpg\n121.jpg",
        "*a;*b;*b*\nxa\nxb"})
    seeds.add(std::string_view(text));
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const texts lines = split(std::string(text_of(input)), '\n');
  const std::string& patterns = lines[0];
  const texts names(lines.begin() + 1, lines.end());
  static mr::block_pool pool;
  mr::record_builder build(pool);
  build.begin("s.tar", "k", 0);
  for (const std::string& name : names) static_cast<void>(build.add_field(name, 0));
  const mr::record r = build.finish();
  const bool by_number = choose.below(3) > 0;
  const auto expected = match_slowly(patterns, names, by_number);
  std::optional<std::vector<mr::bytes>> ours;
  try {
    ours = r.fields(patterns, by_number ? mr::record::order::number : mr::record::order::shard);
  } catch (const mr::setup_error&) {
  }
  counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value()) fail(ours ? "invalid patterns were accepted" : "patterns were refused");
  if (!ours) return;
  expect(ours->size() == expected->size(), "another number of fields");
  for (std::size_t i = 0; i < ours->size(); ++i)
    expect((*ours)[i].name() == names[(*expected)[i]], "another field");

  static const std::string file = "P6 2 1 255\nabcdef";
  const mr::picture image = mr::pnm(mr::bytes::borrowed(mr::detail::bytes_of(file)));
  const mr::picture_list_options options{.max_pictures = choose.below(6) + 1, .size = {.width = 2, .height = 1},
                                         .truncate = choose.below(2) == 0};
  std::optional<mr::picture_list> list;
  try {
    list.emplace(std::vector<mr::picture>(ours->size(), image), options);
  } catch (const mr::data_error&) {
  }
  expect(list.has_value() == (options.truncate || ours->size() <= options.max_pictures), "another limit of a list");
  if (!list) return;
  expect(list->length() == std::min(ours->size(), options.max_pictures), "another length of a list");
  std::vector<std::uint8_t> row(options.max_pictures * 6, 0);
  mr::scratch s;
  list->render(row, s);
  for (std::size_t i = 0; i < row.size(); ++i)
    expect(row[i] == (i < list->length() * 6 ? "abcdef"[i % 6] : 0), "another pixel of a list");
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"*", ";", "*", "\n", "\n", ".jpg", "*.jpg", "0", "00", "9", "10", "a", "\n1.jpg", ""})
      .change(data, size, max_size, 0);
}
