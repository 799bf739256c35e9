#include "../../io/tar_bytes.hpp"

#include <millrace/sources/list/brace_expansion.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/sources/list/sidecar_counts.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

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

namespace {

std::string message_of(const std::string& pattern) {
  try {
    (void)mr::list_shards(pattern);
  } catch (const mr::setup_error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("patterns are split at ::, then braces, globs and folders are expanded") {
  const temporary_folder f;
  for (const char* name : {"a-00.tar", "a-01.tar", "a-02.tar", "b.tar.gz", ".hidden.tar", "notes.txt"})
    save(f / name, "x");
  std::filesystem::create_directory(f / "sub");
  for (const char* name : {"10.tgz", "9.tar.zst", "8.tar.bz2", "7.tar.xz", "6.tar.lz4", "x.idx", ".9.tar"})
    save(f / ("sub/" + std::string(name)), "x");
  const std::string p = f.path() + "/";
  CHECK(mr::list_shards(p + "a-{00..02}.tar") == names{p + "a-00.tar", p + "a-01.tar", p + "a-02.tar"});
  CHECK(mr::list_shards(p + "a-{02..00..2}.tar::" + p + "b.tar.gz") ==
        names{p + "a-02.tar", p + "a-00.tar", p + "b.tar.gz"});
  CHECK(mr::list_shards(p + "a-*.tar") == names{p + "a-00.tar", p + "a-01.tar", p + "a-02.tar"});
  CHECK(mr::list_shards(p + "{b,a}*") == names{p + "b.tar.gz", p + "a-00.tar", p + "a-01.tar", p + "a-02.tar"});
  CHECK(mr::list_shards(std::filesystem::path(p + "a-*.tar")).size() == 3);
  CHECK(mr::list_shards(p + "a-0[12].tar") == names{p + "a-01.tar", p + "a-02.tar"});
  CHECK(mr::list_shards(p + "a-0?.tar").size() == 3);
  CHECK(mr::list_shards(f.path()) == names{p + "a-00.tar", p + "a-01.tar", p + "a-02.tar", p + "b.tar.gz"});
  CHECK(mr::list_shards(p + "sub/") == names{p + "sub/10.tgz", p + "sub/6.tar.lz4", p + "sub/7.tar.xz",
                                             p + "sub/8.tar.bz2", p + "sub/9.tar.zst"});
  CHECK(mr::list_shards(p + "su*").size() == 5);
  CHECK(mr::list_shards("file:" + p + "b.tar.gz") == names{p + "b.tar.gz"});
  CHECK(mr::list_shards("file://" + p + "b.tar.gz") == names{p + "b.tar.gz"});
  CHECK(mr::list_shards("file://localhost" + p + "a-{00,01}.tar").size() == 2);
}

TEST_CASE("a list of names is used literally, with any characters") {
  const temporary_folder f;
  const names odd{f / "a#b.tar", f / "a?b.tar", f / "{1..2}.tar", f / "x::y.tar", f / "[1].tar",
                  f / "run:3.tar", f / "%41.tar"};
  for (const auto& name : odd) save(name, "x");
  CHECK(mr::list_shards(odd) == odd);
  CHECK(mr::list_shards({odd[0], odd[2]}) == names{odd[0], odd[2]});
  CHECK(mr::list_shards(std::array{odd[2], odd[0]}) == names{odd[2], odd[0]});
  CHECK(mr::list_shards(std::span<const std::string>(odd)) == odd);
  CHECK(mr::list_shards(std::vector<std::string_view>{odd[1]}) == names{odd[1]});
  CHECK(mr::list_shards(std::vector<std::filesystem::path>{odd[2], odd[3]}) == names{odd[2], odd[3]});
  CHECK(mr::list_shards(std::set<std::string>{odd[0]}) == names{odd[0]});
  CHECK(mr::list_shards(f / "a#b.tar") == names{f / "a#b.tar"});
  CHECK(mr::list_shards(f / "a?b.tar") == names{f / "a?b.tar"});   // a file of that name precedes the glob
  CHECK(mr::list_shards(f / "[1].tar") == names{f / "[1].tar"});
  CHECK_THROWS_AS((void)mr::list_shards(names{f / "{1,2}.tar"}), mr::setup_error);
  CHECK_THROWS_AS((void)mr::list_shards(names{}), mr::setup_error);
}

TEST_CASE("missing files are named at once, the first ones and their number") {
  const temporary_folder f;
  save(f / "s-2.tar", "x");
  const std::string message = message_of(f / "s-{0..9}.tar");
  CHECK(message.starts_with("9 of 10 shards cannot be read: '" + (f / "s-0.tar") + "' (No such file or directory), '" +
                            (f / "s-1.tar")));
  CHECK(message.find("s-3.tar") != std::string::npos);
  CHECK(message.find("s-4.tar") == std::string::npos);
  CHECK(message.ends_with(", ..."));
  CHECK(message_of(f / "none*.tar") == "no file matches '" + (f / "none*.tar") + "'");
  CHECK(message_of(f.path() + "::").ends_with("has an empty part"));
  CHECK(message_of("").ends_with("has an empty part"));
  std::filesystem::create_directory(f / "empty");
  CHECK(message_of(f / "empty").ends_with("has no shards"));
  CHECK_THROWS_AS((void)mr::list_shards(names{f / "empty"}), mr::setup_error);   // a folder is not a file
  if (::geteuid() != 0) {
    save(f / "secret.tar", "x");
    std::filesystem::permissions(f / "secret.tar", std::filesystem::perms::none);
    CHECK(message_of(f / "secret.tar").find("Permission denied") != std::string::npos);
  }
}

TEST_CASE("the hints about missing shards are useful") {
  const temporary_folder f;
  const auto hint_of = [](const std::string& pattern) {
    try {
      (void)mr::list_shards(pattern);
    } catch (const mr::setup_error& e) {
      return e.hint();
    }
    return std::string("no error");
  };
  for (const char* number : {"000", "001", "002", "010"}) save(f / ("jpg-" + std::string(number) + ".tar"), "x");
  CHECK(hint_of(f / "jpg-{0..2}.tar") ==
        "'" + (f / "jpg-000.tar") + "' exists. Write the range with its leading zeros, as in {000..146}");
  CHECK(hint_of(f / "jpg-10.tar").starts_with("'" + (f / "jpg-010.tar") + "' exists"));
  CHECK(hint_of(f / "jpg-{000..010}.tar").ends_with("name them by a glob such as '" + (f / "jpg-*.tar") +
                                                    "', or set .damaged_shards_at_most of shards()"));
  CHECK(hint_of("~/none.tar") == "The shell expands ~ only outside quotes. Write the home folder instead of ~");
  CHECK(hint_of("~/none*.tar") == hint_of("~/none.tar"));
  CHECK(hint_of("none.tar") == "Check the path. Relative paths begin at the working directory, " +
                                   mr::printable(std::filesystem::current_path().string()));
  CHECK(hint_of("/none.tar") == "Check the path");
  CHECK(hint_of("s3://bucket/none.tar").starts_with("Include millrace/adapt/remote.hpp and pass {.storage = "
                                                    "mr::remote()}"));
}

TEST_CASE("commands and network addresses are refused and never followed") {
  const temporary_folder f;
  for (const std::string& location :
       {std::string("pipe:touch " + (f / "ran") + " ; cat x.tar"), std::string("http://host/x.tar"),
        std::string("https://host/x-{00..10}.tar"), std::string("s3://bucket/x.tar"), std::string("gs://b/x.tar"),
        std::string("hf://x"), std::string("file://elsewhere/x.tar"), std::string("file://x.tar"),
        std::string("pipe:x{,}")}) {
    CAPTURE(location);
    CHECK_THROWS_AS((void)mr::list_shards(location), mr::setup_error);
    CHECK_THROWS_AS((void)mr::list_shards(names{location}), mr::setup_error);
  }
  CHECK(f.file_count() == 0);
  CHECK(message_of("s3://bucket/x.tar").find("the scheme 's3' needs a storage") != std::string::npos);
}

TEST_CASE("** matches any number of folders: sorted, without hidden names, and without endless loops over links") {
  const temporary_folder f;
  for (const char* folder : {"a/b/c", "a/.hidden", "z"}) std::filesystem::create_directories(f / folder);
  for (const char* name : {"0.tar", "a/1.tar", "a/b/2.tar", "a/b/c/3.tar", "a/b/c/x.txt", "a/.hidden/4.tar",
                           "a/.5.tar", "z/6.tar"})
    save(f / name, "x");
  std::filesystem::create_directory_symlink("..", f / "a/b/up");          // leads back to a/
  std::filesystem::create_directory_symlink("../z", f / "a/zz");
  std::filesystem::create_symlink("../0.tar", f / "a/link.tar");
  const std::string p = f.path() + "/";
  CHECK(mr::list_shards(p + "**/*.tar") == names{p + "0.tar", p + "a/1.tar", p + "a/b/2.tar", p + "a/b/c/3.tar",
                                                 p + "a/link.tar", p + "a/zz/6.tar", p + "z/6.tar"});
  CHECK(mr::list_shards(p + "a/**/c/*.tar") == names{p + "a/b/c/3.tar"});
  CHECK(mr::list_shards(p + "**/b/**/*.tar") == names{p + "a/b/2.tar", p + "a/b/c/3.tar"});
  CHECK(mr::list_shards(p + "**/**/c/?.tar") == names{p + "a/b/c/3.tar"});
  CHECK(mr::list_shards(p + "a/b/**") == names{p + "a/b/2.tar", p + "a/b/c/3.tar"});   // where the folder would be
  CHECK(mr::list_shards(p + "**/.hidden/*.tar") == names{p + "a/.hidden/4.tar"});
  CHECK(mr::list_shards(p + "**/.*.tar") == names{p + "a/.5.tar"});
  CHECK(mr::list_shards(p + "{a,z}/**/[36].tar") == names{p + "a/b/c/3.tar", p + "a/zz/6.tar", p + "z/6.tar"});
  CHECK(message_of(p + "none/**/*.tar").find("no file matches") != std::string::npos);
  std::filesystem::create_symlink("self.tar", f / "z/self.tar");
  CHECK(message_of(p + "**/self.tar").find("Too many levels of symbolic links") != std::string::npos);
}

TEST_CASE("a folder below ** that cannot be read is named") {
  if (::geteuid() == 0) return;   // root reads everything
  const temporary_folder f;
  std::filesystem::create_directories(f / "a/locked");
  save(f / "a/1.tar", "x");
  std::filesystem::permissions(f / "a/locked", std::filesystem::perms::none);
  std::string message;
  try {
    (void)mr::list_shards(f.path() + "/**/*.tar");
  } catch (const mr::io_error& e) {
    message = e.message();
  }
  std::filesystem::permissions(f / "a/locked", std::filesystem::perms::owner_all);
  CHECK(message == "the folder '" + f.path() + "/a/locked/' cannot be read: Permission denied");
}

// Counts of samples in the files of other tools.
namespace {

using counts = std::vector<std::optional<std::uint64_t>>;

}  // namespace

TEST_CASE("counts of DALI, OpenCLIP and wids are found by the names of shards") {
  const temporary_folder f;
  std::filesystem::create_directory(f / "b");
  const std::vector<std::string> shards{f / "s-0.tar", f / "s-1.tar.gz", f / "s-2.tar", f / "b/s-0.tar"};
  CHECK(mr::sidecar_counts(shards) == counts(4));
  save(f / "s-0.idx", "v1.2 37\njpg 512 100 a.jpg cls 1536 1 a.cls\n");
  CHECK(mr::sidecar_counts(shards) == counts{37, {}, {}, {}});
  save(f / "sizes.json", "{\"s-0.tar\": 37, \"s-1.tar.gz\": 10, \"other.tar\": 5}");
  CHECK(mr::sidecar_counts(shards) == counts{37, 10, {}, {}});
  save(f / "b/sizes.json", " { } ");
  save(f / "wids.json",
       "{\"__kind__\": \"wids-shard-index-v1\", \"wids_version\": 1,\n"
       "\"nothing\": [null, true, -1.5e3, NaN, -Infinity, []],\n"
       " \"shardlist\": [{\"url\": \"https://x/s-2.tar\", \"nsamples\": 12, \"md5sum\": \"\\u00e4\\n\\\"\"},\n"
       "                 {\"url\": \"s-1.tar.gz\", \"nsamples\": 10}, {\"url\": \"s-0.tar\"}]}");
  CHECK(mr::sidecar_counts(shards, {.wids_file = f / "wids.json"}) == counts{37, 10, 12, {}});
}

TEST_CASE("contradicting counts are unknown") {
  const temporary_folder f;
  const std::vector<std::string> shards{f / "s-0.tar", f / "s-1.tar"};
  save(f / "s-0.idx", "v1.1 37\r\n");
  save(f / "sizes.json", "{\"s-0.tar\":38,\"s-1.tar\":5}");
  CHECK(mr::sidecar_counts(shards) == counts{{}, 5});
  save(f / "sizes.json", "{\"s-1.tar\":4,\"a/s-1.tar\":5}");
  CHECK(mr::sidecar_counts(shards) == counts{37, {}});
}

TEST_CASE("files whose content contradicts their names are errors, with a place") {
  const temporary_folder f;
  const std::vector<std::string> shards{f / "s.tar"};
  for (const std::string bad : {"", "v1.2", "v1.2 ", "v1.2 x", "37", "v1.2 3x"}) {
    CAPTURE(bad);
    save(f / "s.idx", bad);
    CHECK_THROWS_AS((void)mr::sidecar_counts(shards), mr::data_error);
  }
  std::filesystem::remove(f / "s.idx");
  const std::string good = R"({"s.tar": 1, "x": ["A\u0041", {"y": [1.5, true]}]})";
  save(f / "sizes.json", good);
  CHECK(mr::sidecar_counts(shards) == counts{1});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    save(f / "sizes.json", good.substr(0, cut));
    CHECK_THROWS_AS((void)mr::sidecar_counts(shards), mr::data_error);
  }
  for (const std::string& bad : {good + "x", std::string("{\"a\":}"), std::string("{\"a\" 1}"), std::string("[1 2]"),
                                 std::string("{\"a\": 1,}"), std::string("\"\\x\""), std::string("\"\\u12\""),
                                 std::string("\"\\u12x4\""), std::string("nul"), std::string(100'000, '[')}) {
    CAPTURE(bad.substr(0, 60));
    save(f / "sizes.json", bad);
    try {
      (void)mr::sidecar_counts(shards);
      FAIL_CHECK("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == f / "sizes.json");
      CHECK(e.where().offset_bytes <= bad.size());
    }
  }
  std::filesystem::remove(f / "sizes.json");
  CHECK_THROWS_AS((void)mr::sidecar_counts(shards, {.wids_file = f / "none"}), mr::io_error);
}
