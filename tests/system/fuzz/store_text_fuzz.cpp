// A libFuzzer target: texts of object stores and their tools. The references are a slow reader of XML that builds a
// tree, a line by line reader of profile files, and the inverse functions of percent encoding and times. fuzz.py builds
// and runs it.
//
// The first byte of the input selects the kind of the rest.
#include <millrace/adapt/remote/store/credential_sources.hpp>
#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>
#include <millrace/adapt/remote/store/utc_time.hpp>
#include <millrace/adapt/remote/store/xml_reader.hpp>

#include "fuzz_target.hpp"
#include "text_mutator.hpp"

#include <map>
#include <optional>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

namespace mr = millrace;

struct refused {};

/// An element with its own text and its children.
struct node {
  std::string name{}, text{};
  std::vector<node> children{};
};

/// Implements the grammar of XML 1.0, one function for each rule.
class slow_xml {
 public:
  explicit slow_xml(std::string_view text) : in_(text) {}

  node document() {
    if (in_.starts_with("\xef\xbb\xbf")) in_.remove_prefix(3);
    misc();
    node root = element(1);
    misc();
    if (!in_.empty()) throw refused();
    return root;
  }

 private:
  bool take(std::string_view mark) {
    if (!in_.starts_with(mark)) return false;
    in_.remove_prefix(mark.size());
    return true;
  }
  void need(std::string_view mark) {
    if (!take(mark)) throw refused();
  }
  std::string until(std::string_view mark) {
    std::string text;
    while (!take(mark)) text += next();
    return text;
  }
  char next() {
    if (in_.empty()) throw refused();
    const char c = in_[0];
    in_.remove_prefix(1);
    return c;
  }
  bool blanks() {
    bool any = false;
    while (!in_.empty() && (in_[0] == ' ' || in_[0] == '\t' || in_[0] == '\r' || in_[0] == '\n')) {
      next();
      any = true;
    }
    return any;
  }
  void misc() {
    while (blanks() || comment()) {
    }
  }
  bool comment() {
    if (take("<?")) until("?>");
    else if (take("<!--")) until("-->");
    else return false;
    return true;
  }
  std::string name() {
    std::string text;
    while (!in_.empty() && std::string_view(" \t\r\n/>=<&\"'").find(in_[0]) == std::string_view::npos) text += next();
    if (text.empty()) throw refused();
    return text;
  }
  std::string character() {
    const std::string entity = until(";");
    static const std::map<std::string, std::string> entities{
        {"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"apos", "'"}};
    if (const auto it = entities.find(entity); it != entities.end()) return it->second;
    if (entity.empty() || entity[0] != '#') throw refused();
    const bool hex = entity.size() > 1 && entity[1] == 'x';
    const std::string digits = entity.substr(hex ? 2 : 1);
    if (digits.empty() || digits.size() > 8 ||
        digits.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "0123456789") != std::string::npos)
      throw refused();
    const std::uint64_t code = std::stoull(digits, nullptr, hex ? 16 : 10);
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw refused();
    std::string text;
    if (code < 0x80) return text += static_cast<char>(code);
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    text += static_cast<char>((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | static_cast<int>(code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
    return text;
  }
  node element(int depth) {
    if (depth > 16) throw refused();
    need("<");
    if (in_.starts_with("!")) throw refused();
    const std::string full = name();
    node result{.name = full.substr(full.find(':') == std::string::npos ? 0 : full.find(':') + 1)};
    while (true) {
      const bool apart = blanks();
      if (take("/>")) return result;
      if (take(">")) break;
      if (!apart) throw refused();
      name();
      blanks();
      need("=");
      blanks();
      const char quote = next();
      if (quote != '"' && quote != '\'') throw refused();
      if (until(std::string(1, quote)).find('<') != std::string::npos) throw refused();
    }
    while (!take("</")) {
      if (comment()) continue;
      if (take("<![CDATA[")) result.text += until("]]>");
      else if (take("&")) result.text += character();
      else if (in_.starts_with("<")) result.children.push_back(element(depth + 1));
      else result.text += next();
    }
    need(full);
    if (!in_.empty() && std::string_view(" \t\r\n>").find(in_[0]) == std::string_view::npos) throw refused();
    blanks();
    need(">");
    return result;
  }

  std::string_view in_;
};

using elements = std::vector<std::pair<std::string, std::string>>;

void flatten(const node& n, const std::string& above, elements& all) {
  const std::string path = above.empty() ? n.name : above + "/" + n.name;
  for (const node& child : n.children) flatten(child, path, all);
  all.emplace_back(path, n.text);
}

void check_xml(std::string_view text) {
  std::optional<elements> ours, expected;
  std::string refusal;
  try {
    elements all;
    mr::detail::xml_reader(text).for_each(
        [&](std::string_view path, const std::string& content) { all.emplace_back(path, content); });
    ours = std::move(all);
  } catch (const mr::data_error& e) {
    refusal = e.message();
  }
  try {
    elements all;
    flatten(slow_xml(text).document(), "", all);
    expected = std::move(all);
  } catch (const refused&) {
  }
  slow::counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value())
    slow::fail(ours ? "accepted, but not XML" : "refused, but XML: " + refusal);
  if (ours != expected) slow::fail("other elements");
}

std::string without_edges(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  while (!text.empty() && blank(text.front())) text.erase(0, 1);
  return text;
}

/// The values of [s] by name; nothing if the file must be refused.
std::optional<std::map<std::string, std::string>> slow_profile(std::string_view text) {
  std::map<std::string, std::string> values;
  std::string section, above;
  bool has_section = false;
  std::string line;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '\n') {
      line += text[i];
      continue;
    }
    const bool indented = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    std::string content = without_edges(line);
    line.clear();
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (content[0] == '[') {
      if (content.find(']') == std::string::npos) return std::nullopt;
      has_section = true;
      section = without_edges(content.substr(1, content.find(']') - 1));
      for (std::size_t at; (at = section.find_first_of("\"'")) != std::string::npos;) section.erase(at, 1);
      above.clear();
      continue;
    }
    if (!has_section) return std::nullopt;
    const std::size_t equals = content.find('=');
    if (equals == 0 || equals == std::string::npos) {
      if (!indented || above.empty()) return std::nullopt;
      continue;
    }
    std::string name = without_edges(content.substr(0, equals)), value = without_edges(content.substr(equals + 1));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    std::size_t mark = std::string::npos;
    for (const char* comment : {" #", "\t#", " ;", "\t;"}) mark = std::min(mark, value.find(comment));
    value = without_edges(value.substr(0, mark));
    const bool inner = indented && !above.empty();
    if (section == "s") values[inner ? above + "." + name : name] = value;
    if (!inner) above = name;
  }
  return values;
}

void check_profile(std::string_view text) {
  const auto expected = slow_profile(text);
  std::optional<mr::detail::profile_file> ours;
  try {
    ours = mr::detail::profile_file::parse(text, "input");
  } catch (const mr::setup_error&) {
  }
  slow::counters().count(ours.has_value());
  if (ours.has_value() != expected.has_value()) slow::fail(ours ? "accepted, against the rules" : "refused");
  if (!ours) return;
  for (const auto& [name, value] : *expected)
    if (ours->value("s", name) != value) slow::fail("another value of " + name);
}

void check_words(std::string_view text) {
  using mr::detail::plus, mr::detail::slash;
  for (const auto what : {slash::unchanged, slash::encoded})
    slow::expect(mr::detail::uri_decoded(mr::detail::uri_encoded(text, what)) == std::string(text), "not its inverse");
  if (const auto decoded = mr::detail::uri_decoded(text))
    slow::expect(mr::detail::uri_decoded(mr::detail::uri_encoded(*decoded, slash::encoded)) == decoded, "other text");
  const auto seconds = mr::detail::utc_seconds(text);
  slow::counters().count(seconds.has_value());
  if (seconds && *seconds >= 0)
    slow::expect(mr::detail::utc_seconds(mr::detail::basic_utc(*seconds)) == seconds || *seconds > 253'402'300'799,
                 "another time");
  mr::detail::http_date_seconds(text);
  if (!mr::detail::is_object_url(text)) return;
  try {
    const auto url = mr::detail::parse_object_url(text);
    const std::string again = url.name_of(url.key);
    slow::expect(again == text || again == std::string(text) + '/', "another name");
  } catch (const mr::setup_error&) {
  }
}

}  // namespace

void slow::write_seeds(const seed_folder& seeds) {
  for (const char* text :
       {"<?xml version=\"1.0\"?><a x=\"1\"><b>t&amp;&#x41;</b><!-- c --><c/><![CDATA[<]]></a>", "<a:b></a:b>",
        "<a><b><c>1</c></b></a>", "<a/>", "<!DOCTYPE a><a/>", "<a>&#1114111;&#55296;</a>"})
    seeds.add('\0' + std::string(text));
  for (const char* text : {"[s]\na = b\n# c\n  d = e\n", "[ \"s\" ]\nA=b # c\nx =\n\ty = z\n", "a = b\n", "[s\n"})
    seeds.add('\1' + std::string(text));
  for (const char* text : {"2015-08-30T12:36:00Z", "20150830T123600Z", "2015-08-30T12:36:00.5+01:00", "a%20b+c",
                           "Sun, 30 Aug 2015 12:36:00 GMT", "s3://bucket/key", "gs://b.c-d"})
    seeds.add('\2' + std::string(text));
}

void slow::check(std::span<const std::byte> input, draw) {
  const unsigned knob = take_knob(input);
  switch (knob % 3) {
    case 0: return check_xml(text_of(input));
    case 1: return check_profile(text_of(input));
    default: return check_words(text_of(input));
  }
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  mr::rng d({.seed = seed});
  if (d.chance(0.1)) {
    static constexpr std::string_view examples[] = {
        std::string_view("\0<a><b>1</b><b/></a>", 20), "\1[s]\na = b\nc =\n  d = e # f\n", "\2"
                                                                                             "2015-08-30T12:36:00Z"};
    size = slow::text_mutator::restart_with(examples[d.below(3)], data, max_size);
  }
  return slow::text_mutator(d, LLVMFuzzerMutate,
                            {"<a>", "</a>", "<b/>", "<", ">", "/", "&lt;", "&#x41;", "&#", ";", "<![CDATA[",
                             "]]>", "<!--", "-->", "<?", "?>", "=", "\"", "'", " ", "\n", "[s]", "[", "]", "a = b\n",
                             "  ", "#", "%20", "+", "s3://", "T", "Z", ":00", "+01:00"})
      .change(data, size, max_size, 1);
}
