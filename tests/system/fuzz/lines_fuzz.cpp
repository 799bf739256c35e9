// A libFuzzer target: lines of a text, against a slow splitter of the complete text. fuzz.py builds and runs it.
//
// The first bytes of the input select options and the longest line. Some inputs are preceded by lines that almost fill
// the first chunk of the file, so that the rest spans two chunks.
#include <millrace/io/file/foreign_file.hpp>
#include <millrace/sources/lines.hpp>

#include "fuzz_target.hpp"

#include <vector>

namespace {

namespace mr = millrace;

struct one_line {
  std::string text{};
  std::uint64_t number = 0, offset = 0;

  bool operator==(const one_line&) const = default;
};

/// A line that cannot be delivered, and whether it is "long" or not "utf8".
struct bad_line {
  std::string problem{};
  std::uint64_t number = 0;

  bool operator==(const bad_line&) const = default;
};

struct lines_read {
  std::vector<one_line> lines{};
  std::vector<bad_line> bad{};
  std::uint64_t empty = 0;
};

/// The length of the sequence of UTF-8 at `at`, by the bits of its code point; 0 if there is none.
std::size_t sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? unsigned{static_cast<unsigned char>(text[at + i])} : 0;
  };
  if (byte(0) < 0x80) return 1;
  const std::size_t count = byte(0) >> 5 == 6 ? 2 : byte(0) >> 4 == 14 ? 3 : byte(0) >> 3 == 30 ? 4 : 0;
  if (count == 0) return 0;
  unsigned code = byte(0) & (0xff >> (count + 1));
  for (std::size_t i = 1; i < count; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 63);
  }
  const unsigned least = count == 2 ? 0x80 : count == 3 ? 0x800 : 0x10000;
  return code >= least && code < 0x110000 && (code < 0xd800 || code > 0xdfff) ? count : 0;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t count = sequence_at(text, at);
    if (count == 0) return false;
    at += count;
  }
  return true;
}

lines_read split_lines(std::string_view text, const mr::line_reader_options& o) {
  lines_read all;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string_view one = text.substr(at, end == std::string_view::npos ? end : end - at);
    std::size_t begin = at;
    at = end == std::string_view::npos ? text.size() : end + 1;
    if (end == std::string_view::npos && number == 0 && one == "\xef\xbb\xbf") break;
    if (end != std::string_view::npos && one.ends_with('\r')) one.remove_suffix(1);
    if (++number == 1 && one.starts_with("\xef\xbb\xbf")) {
      one.remove_prefix(3);
      begin += 3;
    }
    // The reader reports a line that is both as too long, because it searches line ends before it checks bytes.
    if (one.size() > o.limits.max_line_bytes) all.bad.push_back({"long", number});
    else if (o.check_utf8 && !is_utf8(one)) all.bad.push_back({"utf8", number});
    else if (one.empty() && o.skip_empty) ++all.empty;
    else all.lines.push_back({std::string(one), number, begin});
  }
  return all;
}

lines_read read(std::string_view text, const mr::line_reader_options& o, std::size_t piece) {
  static mr::block_pool pool;
  lines_read all;
  mr::line_reader reader(std::make_unique<slow::span_source>(mr::detail::bytes_of(text), piece), pool, o);
  for (bool more = true; more;) {
    try {
      const auto one = reader.next();
      more = one.has_value();
      if (one) all.lines.push_back({std::string(one->text()), one->number(), one->offset_bytes()});
    } catch (const mr::data_error& e) {
      slow::expect(reader.can_continue(), "an error that ends a plain file");
      const std::string message = e.message();
      const std::string_view key = e.where().key;
      all.bad.push_back({message.find("is not valid UTF-8") != std::string::npos ? "utf8"
                         : message.find(" is too long: got ") != std::string::npos ? "long" : message,
                         key.starts_with("line ") ? std::strtoull(e.where().key.c_str() + 5, nullptr, 10) : 0});
    }
  }
  slow::expect(!reader.next(), "a line after the end");
  mr::event_counts counts;
  reader.report(counts);
  for (const auto& c : counts.counts()) all.empty += c.times;
  return all;
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  using namespace std::string_view_literals;
  const std::string_view texts[] = {
      "one\ntwo\nthree\n"sv, "one\r\ntwo\r\n\r\nfour"sv, "\xef\xbb\xbf" "first\nlast"sv, "\xef\xbb\xbf"sv, "\n\n\n"sv,
      "\r\r\n\r"sv, "gr\xc3\xbc\xc3\x9f\n\xe2\x82\xac\n\xf0\x9f\x98\x80\n"sv, "bad\n\xc3\nnext\n"sv,
      "\xff\xfe" "a\0\n\0"sv,
      "\xed\xa0\x80\n"sv, "short\na line that is much longer than the others of this text\nshort\n"sv, ""sv,
      "good\n\xff this line is too long, and no UTF-8\n"sv, "\xef\xbb\xbf\n"sv, "a\0b\n"sv};
  int i = 0;
  for (const auto text : texts)
    for (const char knob : {'\0', '\1', '\3', '\7'}) {
      const char longest[] = {'\x05', '\x14', '\x40', '\xff'};
      seeds.add(std::string{longest[i++ % 4], knob} + std::string(text));
    }
}

void slow::check(std::span<const std::byte> input, draw choose) {
  const unsigned longest = take_knob(input), knob = take_knob(input);
  const mr::line_reader_options o{.limits = {.max_line_bytes = longest}, .skip_empty = (knob & 1) != 0,
                                  .check_utf8 = (knob & 2) == 0};
  std::string text(text_of(input));
  if (looks_compressed(text) || mr::detail::foreign_to_lines(text)) return;
  if (longest >= 15 && choose.one_in(500)) {
    constexpr std::size_t chunk = std::size_t{512} << 10;
    const std::size_t fill = chunk - std::min<std::size_t>(chunk, choose.below(text.size() + 2));
    std::string filler;
    filler.reserve(fill + text.size());
    while (filler.size() < fill) filler += filler.size() % 3 == 0 ? "0123456789abcd\n" : "0123456789\r\n";
    filler.resize(fill);
    text.insert(0, filler);
  }
  const std::unique_ptr<char[]> exact(new char[text.size()]);
  std::copy(text.begin(), text.end(), exact.get());
  const lines_read ours = read({exact.get(), text.size()}, o, choose.one_in(8) ? 1 + choose.below(7) : ~std::size_t{0});
  const lines_read expected = split_lines(text, o);
  counters().count(ours.bad.empty());
  if (ours.bad.size() != expected.bad.size())
    fail(std::to_string(ours.bad.size()) + " bad lines, expected " + std::to_string(expected.bad.size()));
  for (std::size_t i = 0; i < ours.bad.size(); ++i)
    if (!(ours.bad[i] == expected.bad[i]))
      fail("line " + std::to_string(ours.bad[i].number) + " is bad: '" + ours.bad[i].problem + "'; expected line " +
            std::to_string(expected.bad[i].number) + ", '" + expected.bad[i].problem + "'");
  if (ours.lines.size() != expected.lines.size())
    fail(std::to_string(ours.lines.size()) + " lines, expected " + std::to_string(expected.lines.size()));
  for (std::size_t i = 0; i < ours.lines.size(); ++i)
    if (!(ours.lines[i] == expected.lines[i])) fail("another line " + std::to_string(expected.lines[i].number));
  if (ours.empty != expected.empty) fail("another number of empty lines");
}
