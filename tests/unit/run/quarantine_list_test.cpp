// Quarantine lists: the format of a line, hostile keys, restarts, cut lines, full disks.
#include <millrace/run/quarantine_list.hpp>

#include "../io/tar_bytes.hpp"

#include <millrace/sources/keys_from.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/resource.h>

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
