// Quarantine lists: the format of a line, hostile keys, restarts, cut lines, full disks.
#include "../../temporary_folder.hpp"
#include "../io/tar_bytes.hpp"

#include <millrace/item/tensor/ragged.hpp>
#include <millrace/millrace.hpp>
#include <millrace/run/quarantine_list.hpp>
#include <millrace/sources/keys_from.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("an entry is one line of JSON, which omits unknown numbers") {
  const temporary_folder f;
  const std::string path = f / "run1/deep/quarantine-0.jsonl";
  mr::quarantine_list list(path);
  CHECK(list.path() == path);
  CHECK(list.size() == 0);
  CHECK(list.add({.shard = "/data/s-0.tar", .key = "n1/7", .offset_bytes = 512, .position = 4711, .epoch = 2,
                  .stage = "jpeg", .reason = "cut off at \"EOI\""}));
  CHECK(list.add({.shard = "s-1.tar", .key = "a"}));
  CHECK(list.add({.shard = "s-2.tar", .offset_bytes = 1024, .stage = "tar", .reason = "no header"}));
  CHECK(list.add({.shard = "s-\xff.tar", .key = "\xfe\x01", .epoch = 0}));
  CHECK(list.size() == 4);
  CHECK(content_of(path) ==
        "{\"shard\": \"/data/s-0.tar\", \"key\": \"n1/7\", \"offset\": 512, \"position\": 4711, \"epoch\": 2, "
        "\"stage\": \"jpeg\", \"reason\": \"cut off at \\\"EOI\\\"\"}\n"
        "{\"shard\": \"s-1.tar\", \"key\": \"a\", \"stage\": \"\", \"reason\": \"\"}\n"
        "{\"shard\": \"s-2.tar\", \"key\": null, \"offset\": 1024, \"stage\": \"tar\", \"reason\": \"no header\"}\n"
        "{\"shard\": \"s-\xef\xbf\xbd.tar\", \"shard_hex\": \"732dff2e746172\", \"key\": \"\xef\xbf\xbd\\u0001\", "
        "\"key_hex\": \"fe01\", \"epoch\": 0, \"stage\": \"\", \"reason\": \"\"}\n");
  const mr::key_list keys = mr::keys_from(path);
  CHECK(keys.size() == 3);
  CHECK(keys.contains("n1/7", "s-0.tar"));
  CHECK_FALSE(keys.contains("n1/7", "s-1.tar"));
  CHECK(keys.contains("\xfe\x01", "s-\xff.tar"));
}

TEST_CASE("every key is restored byte for byte, and no byte of it reaches a terminal as a control character") {
  const temporary_folder f;
  std::vector<std::string> keys{"\"", "\\", "\\u0041", "\\\"}", "{\"key\": \"other\"}", "a\nb", "a\r", "\r\n", " ",
                                "\t", std::string("\0", 1), std::string("a\0b", 3), "\x1b[2J\x1b]0;title\x07", "\x7f",
                                "\xc2\x9b" "31m", "\xe2\x80\xa8", "\xe2\x80\xae" "gnp.exe", "\xef\xbb\xbf" "bom",
                                "\xef\xbf\xbd", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82",
                                "\xf0\x9f\x98\x80", "null", "0", "../../etc/passwd", std::string(65'536, 'x'),
                                std::string(65'536, '\x01'), std::string(65'536, '\xff')};
  for (int c = 1; c < 256; ++c) keys.push_back({'b', 'y', 't', 'e', static_cast<char>(c)});
  const std::string path = f / "q.jsonl";
  {
    mr::quarantine_list list(path);
    for (const std::string& key : keys) CHECK(list.add({.shard = "s.tar", .key = key, .reason = key}));
  }
  const mr::key_list listed = mr::keys_from(path);
  CHECK(listed.size() == keys.size());
  for (const std::string& key : keys) CHECK(listed.contains(key, "s.tar"));
  mr::quarantine_list again(path);
  CHECK(again.size() == keys.size());
  for (const std::string& key : keys) CHECK_FALSE(again.add({.shard = "s.tar", .key = key}));

  const std::string text = content_of(path);
  CHECK(mr::detail::is_utf8(text));
  CHECK(text.find("\xc2\x9b") == std::string::npos);
  CHECK(std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; }));
  CHECK(std::count(text.begin(), text.end(), '\n') == static_cast<std::ptrdiff_t>(keys.size()));
}

TEST_CASE("no sample is listed twice, in one run or after a restart") {
  const temporary_folder f;
  const std::string path = f / "q.ndjson";
  {
    mr::quarantine_list list(path);
    CHECK(list.add({.shard = "/a/s.tar", .key = "k", .epoch = 0}));
    CHECK_FALSE(list.add({.shard = "/elsewhere/s.tar", .key = "k", .epoch = 1, .reason = "another"}));
    CHECK(list.add({.shard = "t.tar", .key = "k"}));
    CHECK(list.add({.shard = "s.tar", .reason = "cut"}));
    CHECK_FALSE(list.add({.shard = "s.tar", .offset_bytes = 7, .reason = "cut again"}));
    CHECK(list.add({.shard = "t.tar"}));
  }
  const std::string before = content_of(path);
  {
    mr::quarantine_list list(path);
    CHECK(list.size() == 4);
    CHECK_FALSE(list.add({.shard = "s.tar", .key = "k", .epoch = 2}));
    CHECK_FALSE(list.add({.shard = "t.tar", .key = "k"}));
    CHECK_FALSE(list.add({.shard = "/b/s.tar"}));
    CHECK_FALSE(list.add({.shard = "t.tar"}));
    CHECK(content_of(path) == before);
    CHECK(list.add({.shard = "s.tar", .key = "k2"}));
    CHECK(list.size() == 5);
  }
  CHECK(content_of(path).starts_with(before));
  // handwritten: a key without a shard applies to every shard
  save(f / "hand.jsonl", "{\"key\": \"k\"}\n\n{\"key\": null, \"shard\": \"\"}\n");
  mr::quarantine_list list(f / "hand.jsonl");
  CHECK_FALSE(list.add({.shard = "s.tar", .key = "k"}));
  CHECK(list.add({.shard = "s.tar"}));
  // An entry of a folder is one without a shard.
  save(f / "folder.jsonl", "{\"key\": \"k\", \"shard\": \"a/\"}\n{\"key\": \"/k\", \"shard\": \"a\"}\n");
  mr::quarantine_list of_folder(f / "folder.jsonl");
  CHECK(of_folder.size() == 2);
  CHECK(of_folder.add({.shard = "s.tar", .key = "k"}));
}

TEST_CASE("a last line that was cut off is removed, wherever it was cut") {
  const temporary_folder f;
  const std::string path = f / "q.jsonl";
  const std::string entry = "{\"shard\": \"s.tar\", \"key\": \"} \\\" {\", \"stage\": \"\", \"reason\": \"\"}\n";
  const std::string last = "{\"shard\": \"s.tar\", \"key\": \"b}\", \"stage\": \"\", \"reason\": \"\"}";
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    CAPTURE(cut);
    save(path, entry + last.substr(0, cut));
    mr::quarantine_list list(path);
    CHECK(list.add({.shard = "s.tar", .key = "b}"}) == (cut < last.size()));
    CHECK(content_of(path) == entry + last + "\n");
  }
}

TEST_CASE("a full disk is an error, leaves no partial entry, and the entry can be added later") {
  const temporary_folder f;
  std::filesystem::create_symlink("/dev/full", f / "full.jsonl");
  mr::quarantine_list full(f / "full.jsonl");
  CHECK_THROWS_WITH_AS(full.add({.shard = "s.tar", .key = "a"}), doctest::Contains("full.jsonl"), mr::io_error);
  CHECK(full.size() == 0);

  const std::string path = f / "q.jsonl";
  mr::quarantine_list list(path);
  CHECK(list.add({.shard = "s.tar", .key = "a"}));
  const std::string before = content_of(path);
  // A limit on the file's size lets write() succeed partially first, like a disk that fills up.
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = before.size() + 10, .rlim_max = old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_AS(list.add({.shard = "s.tar", .key = "b"}), mr::io_error);
  const std::string after = content_of(path);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(after == before);
  CHECK(list.size() == 1);
  CHECK(list.add({.shard = "s.tar", .key = "b"}));
  CHECK(mr::keys_from(path).size() == 2);
}

TEST_CASE("files that cannot be a quarantine list are refused") {
  const temporary_folder f;
  CHECK_THROWS_WITH_AS(mr::quarantine_list(f / "q.txt"), doctest::Contains("q.txt"), mr::setup_error);
  CHECK_FALSE(std::filesystem::exists(f / "q.txt"));
  CHECK_THROWS_WITH_AS(mr::quarantine_list(f / "q.jsonl.gz"), doctest::Contains(".jsonl"), mr::setup_error);
  save(f / "log.jsonl", "{\"step\": 7}\n");
  CHECK_THROWS_WITH_AS(mr::quarantine_list(f / "log.jsonl"), doctest::Contains("line 1"), mr::data_error);
  save(f / "file", "");
  CHECK_THROWS_WITH_AS(mr::quarantine_list(f / "file/q.jsonl"), doctest::Contains("file"), mr::io_error);
  const mr::quarantine_list first(f / "q.jsonl");
  CHECK_THROWS_AS(mr::quarantine_list(f / "q.jsonl"), mr::setup_error);
}

// Runs over files of lines with single bad ones: each is one damaged sample, and the other lines are delivered.
namespace {

struct numbered {
  std::int32_t number;
};

numbered number_of(const mr::line& l) { return {l.field().as<std::int32_t>()}; }

/// Lines "0", "1", ... of `count`; every `bad`-th one, from the third on, is not UTF-8 or too long.
std::string file_of(int first, int count, int bad) {
  std::string text;
  for (int i = first; i < first + count; ++i)
    text += i % bad != 2 ? std::to_string(i) + "\n" : i % 2 ? "caf\xe9\n" : std::string(3'000, '1') + "\n";
  return text;
}

std::vector<std::string> files_of(const temporary_folder& folder, int bad) {
  std::vector<std::string> names;
  for (int f = 0; f < 3; ++f) {
    names.push_back(folder / ("f" + std::to_string(f) + ".txt"));
    std::ofstream(names.back(), std::ios::binary) << file_of(f * 500, 500, bad);
  }
  return names;
}

struct result {
  std::vector<std::int32_t> numbers{};
  std::uint64_t masked = 0;
  std::string error{};
};

result run_over(const std::vector<std::string>& names, const mr::session_options& o, std::size_t window = 0) {
  result all;
  const auto lines = [&] { return mr::lines(names, {.seed = 3, .limits = {.max_line_bytes = 1'000}}); };
  const auto read = [&](auto flow) {
    mr::session run{std::move(flow) | mr::map(number_of) | mr::batch<&numbered::number>({.size = 10}), o};
    for (auto& b : run)
      for (std::size_t i = 0; i < b.size(); ++i) {
        const bool valid = o.on_damage.policy == mr::damage::fail || b.valid()[i] != 0;
        all.masked += !valid;
        if (valid) all.numbers.push_back(b.template get<&numbered::number>().host()[i]);
      }
  };
  try {
    if (window > 0) read(lines() | mr::shuffle({.window = window}));
    else read(lines());
  } catch (const mr::error& e) {
    all.error = e.what();
  }
  return all;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a bad line is one damaged sample: all other lines are delivered, and counts and the quarantine list name "
          "it") {
  const temporary_folder folder;
  const auto names = files_of(folder, 100);   // 15 bad ones, of either kind
  for (const int threads : {0, 2})
    for (const std::size_t window : {0, 50}) {
      CAPTURE(threads);
      CAPTURE(window);
      const std::string list = folder / ("list" + std::to_string(threads) + std::to_string(window));
      const result r = run_over(names, {.threads = threads, .notice = mr::quiet,
                                        .on_damage = {.policy = mr::damage::mask, .at_most_share = 0.5,
                                                      .quarantine = list}},
                                window);
      REQUIRE_MESSAGE(r.error.empty(), r.error);
      CHECK(r.masked == 15);
      std::vector<std::int32_t> sorted = r.numbers, expected;
      std::sort(sorted.begin(), sorted.end());
      for (int i = 0; i < 1'500; ++i)
        if (i % 100 != 2) expected.push_back(i);
      CHECK(sorted == expected);
      if (window == 0) CHECK(r.numbers == expected);
      std::string entries;
      for (const auto& file : std::filesystem::directory_iterator(folder / ""))
        if (file.path().filename().string().starts_with("list" + std::to_string(threads) + std::to_string(window)))
          entries += text_of(file.path().string());
      CHECK(std::count(entries.begin(), entries.end(), '\n') == 15);
      CHECK(entries.find("f1.txt") != std::string::npos);
      CHECK_MESSAGE(entries.find("line 103") != std::string::npos, entries);
    }
  const result replaced = run_over(names, {.threads = 1, .notice = mr::quiet,
                                           .on_damage = {.policy = mr::damage::replace, .at_most_share = 0.5}});
  CHECK(replaced.error.empty());
  CHECK(replaced.numbers.size() == 1'500);
}

TEST_CASE("without on_damage a bad line ends the run with its file, line and column, after the lines before it") {
  const temporary_folder folder;
  const std::string name = folder / "labels.txt";
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i) + "\n";
  std::ofstream(name, std::ios::binary) << text + "a cat\xc3\xa9 and \x92 dog\n" + text;
  const result r = run_over({name}, {.threads = 1, .notice = mr::quiet});
  CHECK(r.numbers.size() == 40);
  CHECK_MESSAGE(r.error.find("labels.txt:41 is not valid UTF-8: got byte 0x92 at column 12") != std::string::npos,
                r.error);
}
