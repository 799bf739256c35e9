#include <millrace/sources/list/brace_expansion.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using names = std::vector<std::string>;

struct row {
  std::string pattern;
  names expected;
};

}  // namespace

TEST_CASE("braces expand as braceexpand 0.1.7 does") {
  const std::vector<row> table{
      {"", {""}},
      {"abc", {"abc"}},
      {"{1,2}", {"1", "2"}},
      {"{1}", {"{1}"}},
      {"{}", {"{}"}},
      {"{{}}", {"{{}}"}},
      {"{1,2{}}", {"1", "2{}"}},
      {"{,x}", {"", "x"}},
      {"{x,}", {"x", ""}},
      {"{,}{,}", {"", "", "", ""}},
      {"{{,}}", {"{}", "{}"}},
      {"a{,{,b}}", {"a", "a", "ab"}},
      {"{{a,b}}", {"{a}", "{b}"}},
      {"{a{b,c}}", {"{ab}", "{ac}"}},
      {"{a{1..2}b}", {"{a1b}", "{a2b}"}},
      {"{a{x}b,c}", {"a{x}b", "c"}},
      {"{{a,b},{c,d}}", {"a", "b", "c", "d"}},
      {"a{b,c{d,e}}f{g,h}", {"abfg", "abfh", "acdfg", "acdfh", "acefg", "acefh"}},
      {"{a,b}{1..2}", {"a1", "a2", "b1", "b2"}},
      {"{a}{b,c}", {"{a}b", "{a}c"}},
      {"${a,b}", {"$a", "$b"}},
      {"{1 ,2}", {"1 ", "2"}},
      {"{\xc3\xa9,b}", {"\xc3\xa9", "b"}},
      // ranges of numbers
      {"{1..3}", {"1", "2", "3"}},
      {"{3..1}", {"3", "2", "1"}},
      {"{0..0}", {"0"}},
      {"{00..0}", {"00"}},
      {"{01..3}", {"01", "02", "03"}},
      {"{1..03}", {"01", "02", "03"}},
      {"{8..11}", {"8", "9", "10", "11"}},
      {"{08..11}", {"08", "09", "10", "11"}},
      {"{9..011..1}", {"009", "010", "011"}},
      {"{100..098}", {"100", "099", "098"}},
      {"{-1..1}", {"-1", "0", "1"}},
      {"{-0..1}", {"0", "1"}},
      {"{-01..1}", {"-01", "000", "001"}},
      {"{-1..01}", {"-1", "00", "01"}},
      {"{-5..5..5}", {"-5", "0", "5"}},
      {"{005..-5..5}", {"005", "000", "-05"}},
      {"{000..012..5}", {"000", "005", "010"}},
      {"{1..10..3}", {"1", "4", "7", "10"}},
      {"{10..1..3}", {"10", "7", "4", "1"}},
      {"{10..1..-3}", {"10", "7", "4", "1"}},
      {"{10..0..5}", {"10", "5", "0"}},
      {"{1..3..0}", {"1", "2", "3"}},
      {"{1..3..01}", {"1", "2", "3"}},
      {"{1..01..2}", {"01"}},
      {"{00000000000000000000001..2}", {"00000000000000000000001", "00000000000000000000002"}},
      {"{1..3..2}x{a}", {"1x{a}", "3x{a}"}},
      {"{1..3,x}", {"1..3", "x"}},
      {"{{1..3},x}", {"1", "2", "3", "x"}},
      {"{{1..3}}", {"{1}", "{2}", "{3}"}},
      // ranges of letters
      {"{a..e}", {"a", "b", "c", "d", "e"}},
      {"{e..a}", {"e", "d", "c", "b", "a"}},
      {"{a..i..3}", {"a", "d", "g"}},
      {"{a..e..-2}", {"a", "c", "e"}},
      {"{Z..a}", {"Z", "a"}},
      // texts that resemble a range
      {"{a..3}", {"{a..3}"}},
      {"{1..a}", {"{1..a}"}},
      {"{+1..3}", {"{+1..3}"}},
      {"{1..}", {"{1..}"}},
      {"{..3}", {"{..3}"}},
      {"{1...3}", {"{1...3}"}},
      {"{1..2..3..4}", {"{1..2..3..4}"}},
      {"{1..3..}", {"{1..3..}"}},
      {"{1..3..+1}", {"{1..3..+1}"}},
      {"{1..3..x}", {"{1..3..x}"}},
      {"{aa..c}", {"{aa..c}"}},
      {"{1.5..3}", {"{1.5..3}"}},
      {"{ 1..3}", {"{ 1..3}"}},
      {"{-..3}", {"{-..3}"}},
      {"{1_0..12}", {"{1_0..12}"}},
      // backslashes
      {"\\{1,2\\}", {"{1,2}"}},
      {"{1\\,2,3}", {"1,2", "3"}},
      {"{\\{,\\}}", {"{", "}"}},
      {"{1\\..3}", {"{1..3}"}},
      {"{\\a..c}", {"{a..c}"}},
      {"{foo..bar..99999999999999999999}", {"{foo..bar..99999999999999999999}"}},   // no range, so no number
      {"a\\b", {"ab"}},
      {"a\\", {"a\\"}},
      {"\\\\", {"\\"}},
  };
  for (const auto& entry : table) {
    CAPTURE(entry.pattern);
    CHECK(mr::detail::expand_braces(entry.pattern) == entry.expected);
  }
}

TEST_CASE("a range of shards is padded, complete and in order") {
  const names all = mr::detail::expand_braces("s/train-{000..146}.tar");
  REQUIRE(all.size() == 147);
  CHECK(all.front() == "s/train-000.tar");
  CHECK(all[99] == "s/train-099.tar");
  CHECK(all.back() == "s/train-146.tar");
}

TEST_CASE("a brace without its partner is an error that shows the pattern") {
  for (const char* pattern : {"{", "}", "}{", "a}", "{a", "{{1,2}", "{1,2}}", "\\{1,2}", "{1,2\\}", "{1..2}{",
                              "{a,b}\\{c}", "{a,\\}"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS((void)mr::detail::expand_braces(pattern), mr::setup_error);
  }
  try {
    (void)mr::detail::expand_braces("train-{000..146.tar");
    FAIL("no error");
  } catch (const mr::setup_error& e) {
    CHECK(e.message() == "the pattern 'train-{000..146.tar' has a '{' without its '}'");
  }
}

TEST_CASE("a typing error cannot eat the memory or the stack") {
  for (const char* pattern :
       {"{0..99999999999}", "{-9223372036854775808..9223372036854775807}", "{0..99999999999999999999}",
        "{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}", "{{0..999999},{0..999999}}"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS((void)mr::detail::expand_braces(pattern), mr::setup_error);
  }
  CHECK_THROWS_AS((void)mr::detail::expand_braces(std::string(100'000, '{') + std::string(100'000, '}')),
                  mr::setup_error);
  CHECK(mr::detail::expand_braces("{0..9}", 10).size() == 10);
  CHECK_THROWS_AS((void)mr::detail::expand_braces("{0..10}", 10), mr::setup_error);
  CHECK(mr::detail::expand_braces("{-9223372036854775808..9223372036854775807..9223372036854775807}").size() == 3);
}
