// The definition of a line, and the errors of a file that cannot be read to its end.
#include "../io/tar_bytes.hpp"

#include <millrace/sources/keys_from.hpp>
#include <millrace/sources/lines.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

struct lines_read {
  std::vector<std::string> texts{};
  std::vector<std::uint64_t> numbers{}, offsets{};
  std::string error{};                 // the first
  std::vector<std::string> errors{};   // all, including that of the file
  friend bool operator==(const lines_read&, const lines_read&) = default;
};

lines_read read_lines(std::string file, mr::line_reader_options options = {}) {
  lines_read all;
  mr::line_reader reader(std::make_unique<memory_source>(std::move(file)), shared_pool(), options);
  const auto read_on = [&] {
    while (auto one = reader.next()) {
      all.texts.emplace_back(one->text());
      all.numbers.push_back(one->number());
      all.offsets.push_back(one->offset_bytes());
      if (one->number() % 64 != 1) continue;   // the location in errors, for some lines of each block
      REQUIRE(one->origin().where().key == "line " + std::to_string(one->number()));
      REQUIRE(mr::detail::location_of(one->field()).key == one->origin().key());
    }
  };
  for (bool more = true; more;) {
    try {
      read_on();
      more = false;
    } catch (const mr::error& e) {
      if (all.errors.empty()) all.error = e.what();
      all.errors.emplace_back(e.what());
      more = reader.can_continue();
      if (!more) CHECK_THROWS(static_cast<void>(reader.next()));
    }
  }
  return all;
}

/// Character by character.
lines_read read_slowly(const std::string& file) {
  lines_read all;
  std::string text;
  std::uint64_t number = 1, begin = 0;
  const auto end_line = [&] {
    std::size_t skipped = number == 1 && text.starts_with("\xef\xbb\xbf") ? 3 : 0;
    all.texts.push_back(text.substr(skipped));
    all.numbers.push_back(number++);
    all.offsets.push_back(begin + skipped);
    text.clear();
  };
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (file[i] != '\n') {
      text += file[i];
      continue;
    }
    if (text.ends_with('\r')) text.pop_back();
    end_line();
    begin = i + 1;
  }
  if (!text.empty()) end_line();
  return all;
}

using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("ends of lines, the last line, a byte order mark") {
  CHECK(read_lines("a\nb\n").texts == texts{"a", "b"});
  CHECK(read_lines("a\r\n\r\nb").texts == texts{"a", "", "b"});
  CHECK(read_lines("a\rb\n\r\r\nc\r").texts == texts{"a\rb", "\r", "c\r"});
  CHECK(read_lines("\xef\xbb\xbf" "a\n\xef\xbb\xbf" "b").texts == texts{"a", "\xef\xbb\xbf" "b"});
  CHECK(read_lines("\xef\xbb\xbf").texts.empty());
  CHECK(read_lines("\xef\xbb\xbf\n").texts == texts{""});
  CHECK(read_lines("\n").texts == texts{""});
  CHECK(read_lines("").texts.empty());
  CHECK(read_lines("BZhang wrote this\n").texts == texts{"BZhang wrote this"});   // and it is not bzip2
  const lines_read sparse = read_lines("a\n\n\r\nb\n\n", {.skip_empty = true});
  CHECK(sparse.texts == texts{"a", "b"});
  CHECK(sparse.numbers == std::vector<std::uint64_t>{1, 4});
  CHECK(sparse.offsets == std::vector<std::uint64_t>{0, 5});
}

TEST_CASE("random files equal a read character by character, plain and through every compression") {
  std::mt19937 random(11);
  const auto make = [&](std::size_t bytes, std::size_t line) {
    std::string file = random() % 2 ? "\xef\xbb\xbf" : "";
    while (file.size() < bytes) {
      for (std::size_t left = random() % line; left > 0;) {
        const std::size_t letters = std::min<std::size_t>(left, random() % 100);
        file.append(letters, 'x');
        left -= letters;
        if (left > 0) file += '\r', --left;
      }
      file += random() % 3 ? "\n" : random() % 2 ? "\r\n" : "\xc3\xa9\n";
    }
    if (random() % 2) file.pop_back();
    return file;
  };
  for (const std::size_t line : {3U, 40U, 3'000U, 700'000U})
    for (const std::size_t bytes : {2'000U, line > 3'000 ? 1'200'000U : 600'000U}) {
      const std::string file = make(bytes, line);
      CHECK((read_lines(file) == read_slowly(file)));
    }
  const std::string file = make(700'000, 90), two = file + "end\n" + file;
  const lines_read expected = read_slowly(file), expected_of_two = read_slowly(two);
  for (const std::string command : {"gzip -c", "bzip2 -c", "xz -c", "zstd -qc", "lz4 -qc"}) {
    if (!have(command.substr(0, command.find(' ')))) continue;
    CAPTURE(command);
    CHECK((read_lines(through(command, file)) == expected));
    CHECK((read_lines(through(command, file + "end\n") + through(command, file)) == expected_of_two));
    CHECK(read_lines(through(command, "")).texts.empty());
  }
}

TEST_CASE("invalid UTF-8 is named with file, line, column and offset, between the lines around it") {
  std::string file;
  for (int i = 0; i < 1'000; ++i) file += "all is well \xc3\xa9\n";
  const lines_read bad = read_lines(file + "caf\xe9 au lait\nfine again\n");
  CHECK(bad.texts.size() == 1'001);
  CHECK(bad.texts.back() == "fine again");
  CHECK(bad.errors.size() == 1);
  CHECK(bad.error.find("memory.tar:1001 is not valid UTF-8: got byte 0xe9 at column 4") != std::string::npos);
  CHECK(bad.error.find("offset 15003, key line 1001, stage lines") != std::string::npos);
  CHECK(read_lines(file + "caf\xe9\nfine\n", {.check_utf8 = false}).texts.size() == 1'002);
  // A character that is cut in two by the end of a line is invalid.
  CHECK(read_lines("\xe4\xb8\n\xad\n").error.find(":1 is not valid UTF-8") != std::string::npos);
  CHECK(read_lines("a\nb\xc3").error.find(":2 is not valid UTF-8") != std::string::npos);
  CHECK(read_lines(std::string("\xff\xfe" "a\0\n\0", 6)).error.find("the mark of UTF-16") != std::string::npos);
}

TEST_CASE("a line that is too long is an error before it is buffered") {
  const mr::line_reader_options eight{.limits = {.max_line_bytes = 8}};
  CHECK(read_lines("12345678\r\n12345678", eight).texts == texts{"12345678", "12345678"});
  CHECK(read_lines("\xef\xbb\xbf" "12345678\n", eight).texts == texts{"12345678"});
  const lines_read long_line = read_lines("a\n123456789\nb\n", eight);
  CHECK(long_line.texts == texts{"a", "b"});
  CHECK(long_line.error.find(":2 is too long: got 9 bytes, expected at most 8") != std::string::npos);
  CHECK(long_line.error.find("offset 2, key line 2") != std::string::npos);
  for (const std::string end : {"", "\n", "\r\n", "\nb"}) {
    const lines_read skipped = read_lines("a\n" + std::string(3'000'000, 'x') + end, eight);
    CHECK(skipped.errors.size() == 1);
    CHECK(skipped.error.find(":2 is too long: got 3000000 bytes") != std::string::npos);
    CHECK(skipped.texts == (end == "\nb" ? texts{"a", "b"} : texts{"a"}));
    if (end == "\nb") CHECK(skipped.offsets.back() == 3'000'003);
  }
}

TEST_CASE("each bad line is one error at its place, and all other lines are read") {
  const mr::line_reader_options eight{.limits = {.max_line_bytes = 8}};
  const lines_read both = read_lines("good\n\xff and too long\nfine\n", eight);
  CHECK(both.texts == texts{"good", "fine"});
  CHECK(both.errors.size() == 1);
  CHECK(both.error.find(":2 is too long: got 14 bytes") != std::string::npos);
  const lines_read text_first = read_lines("good\n\xff\nfine\ntoo long a line\n\xc3\xa9\xe9", eight);
  CHECK(text_first.texts == texts{"good", "fine"});
  REQUIRE(text_first.errors.size() == 3);
  CHECK(text_first.errors[0].find(":2 is not valid UTF-8") != std::string::npos);
  CHECK(text_first.errors[1].find(":4 is too long") != std::string::npos);
  CHECK(text_first.errors[2].find(":5 is not valid UTF-8: got byte 0xe9 at column 2") != std::string::npos);
  CHECK(read_lines("\xff\n\xff\n", eight).errors.size() == 2);   // a block of bad lines only
  std::mt19937 random(12);
  for (int round = 0; round < 60; ++round) {
    // Lines of some hundred bytes, or of more than a chunk; about one in ten is bad.
    const std::size_t longest = round % 3 == 0 ? 900'000 : 300, limit = longest / 2;
    std::string file;
    texts good;
    std::vector<std::uint64_t> numbers, offsets, bad;
    for (std::uint64_t n = 1; file.size() < (round % 3 == 0 ? 4'000'000U : 200'000U); ++n) {
      std::string text(random() % limit, 'x');
      const unsigned kind = random() % 20;
      if (kind == 0) text.resize(limit + 1 + random() % limit, 'x');
      if (kind == 1) text += random() % 2 ? "\xe9" : "\xc3";
      (kind < 2 ? bad : numbers).push_back(n);
      if (kind >= 2) {
        offsets.push_back(file.size());
        good.push_back(text);
      }
      file += text + (random() % 2 ? "\n" : "\r\n");
    }
    const lines_read read = read_lines(file, {.limits = {.max_line_bytes = limit}});
    CHECK((read.texts == good));
    CHECK((read.numbers == numbers));
    CHECK((read.offsets == offsets));
    REQUIRE(read.errors.size() == bad.size());
    for (std::size_t i = 0; i < bad.size(); ++i)
      CHECK(read.errors[i].find("memory.tar:" + std::to_string(bad[i]) + " is ") != std::string::npos);
  }
}

TEST_CASE("a compressed file that is cut off or damaged returns its complete lines, then the error") {
  std::string file;
  std::mt19937 random(3);
  for (int i = 0; i < 60'000; ++i) file += std::to_string(random()) + "\n";
  const std::string packed = through("gzip -c", file);
  const lines_read full = read_slowly(file), cut = read_lines(packed.substr(0, packed.size() / 2));
  CHECK(cut.texts.size() > 10'000);
  CHECK(std::equal(cut.texts.begin(), cut.texts.end(), full.texts.begin()));
  CHECK(cut.error.find("the gzip stream is truncated") != std::string::npos);
  CHECK(cut.error.find(", after line " + std::to_string(cut.texts.size())) != std::string::npos);
  std::string damaged = through("xz -c", file);
  damaged[damaged.size() / 2] ^= 1;
  CHECK(read_lines(damaged).error.find("the xz stream is damaged or truncated") != std::string::npos);
}

TEST_CASE("one flipped bit in a compressed file of lines: the same lines, or an error by the end of the file") {
  std::string file;
  std::mt19937 random(4);
  for (int i = 0; i < 3'000; ++i) file += "line " + std::to_string(random()) + "\n";
  const lines_read full = read_slowly(file);
  for (const std::string command : {"gzip -c", "bzip2 -c", "xz -c", "zstd -qc", "lz4 -qc"}) {
    if (!have(command.substr(0, command.find(' ')))) continue;
    CAPTURE(command);
    const std::string packed = through(command, file);
    const int flips = command == "gzip -c" ? 300 : 50;
    int refused = 0;
    for (int i = 0; i < flips; ++i) {
      std::string flipped = packed;
      const std::size_t at = 20 + random() % (packed.size() - 20);
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
      const lines_read result = read_lines(flipped);
      refused += !result.error.empty();
      if (result.error.empty()) CHECK((result == full));
      // Whatever the damage does to the lines, the error names the stream.
      else CHECK(result.errors.back().find(" stream is damaged") != std::string::npos);
    }
    CHECK(refused > flips * 9 / 10);
  }
}

// Lists of keys in files: text, JSON lines, compressed, several, missing.
TEST_CASE("a text has a key in each line, which applies to every shard") {
  const temporary_folder f;
  save(f / "a.txt", "n1/1\r\n\nn1/2 \n{\"key\": \"x\"}\nn1/1");
  const mr::key_list keys = mr::keys_from(f / "a.txt");
  CHECK(keys.size() == 3);
  CHECK(keys.contains("n1/1", "any.tar"));
  CHECK(keys.contains("n1/2 ", "any.tar"));
  CHECK(keys.contains("{\"key\": \"x\"}", "any.tar"));
  CHECK_FALSE(keys.contains("", "any.tar"));
  save(f / "bytes.txt", "\xff\xfe\n");
  CHECK(mr::keys_from(f / "bytes.txt").contains("\xff\xfe", "any.tar"));
}

TEST_CASE("JSON lines bind a key to the file name of its shard") {
  const temporary_folder f;
  save(f / "q.jsonl",
       "{\"shard\": \"/data/s-0.tar\", \"key\": \"a\", \"offset\": 512, \"reason\": {\"key\": \"inner\"}}\n"
       "{\"key\": \"\\u00e4\\ud83d\\ude00\\u0001\"}\n"
       "{\"key\": \"?\", \"key_hex\": \"ff00\", \"shard\": \"s-1.tar\"}\n");
  const mr::key_list keys = mr::keys_from(f / "q.jsonl");
  CHECK(keys.size() == 3);
  CHECK(keys.contains("a", "/elsewhere/s-0.tar"));
  CHECK_FALSE(keys.contains("a", "s-1.tar"));
  CHECK(keys.contains("\xc3\xa4\xf0\x9f\x98\x80\x01", "s-1.tar"));
  CHECK(keys.contains(std::string("\xff\0", 2), "s-1.tar"));
  CHECK_FALSE(keys.contains("inner", "s-0.tar"));
}

TEST_CASE("a note about a shard is left out, and names that are not UTF-8 are decoded from their digits") {
  const temporary_folder f;
  save(f / "q.jsonl",
       "{\"shard\": \"lost.tar\", \"key\": null, \"reason\": \"cut\"}\n"
       "{\"key\": null, \"shard\": \"lost.tar\", \"was\": {\"key\": \"inner\"}}\n"
       "{\"shard\": \"s-?.tar\", \"shard_hex\": \"732dff2e746172\", \"key\": \"a\"}\n"
       "{\"shard\": \"s.tar\", \"key\": null, \"key_hex\": \"ff\"}\n");
  const mr::key_list keys = mr::keys_from(f / "q.jsonl");
  CHECK(keys.size() == 2);
  CHECK_FALSE(keys.contains("inner", "lost.tar"));
  CHECK(keys.contains("a", "/data/s-\xff.tar"));
  CHECK_FALSE(keys.contains("a", "s-?.tar"));
  CHECK(keys.contains("\xff", "s.tar"));
}

TEST_CASE("the last line of a quarantine list that a kill cut off is ignored, and no other cut line is") {
  const temporary_folder f;
  const std::string entry = "{\"shard\": \"s.tar\", \"key\": \"a\"}\n",
                    last = "{\"shard\": \"s.tar\", \"key\": \"b}\"}";
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    CAPTURE(cut);
    save(f / "q.jsonl", entry + last.substr(0, cut));
    CHECK(mr::keys_from(f / "q.jsonl").size() == (cut < last.size() ? 1 : 2));
  }
  save(f / "amid.jsonl", last.substr(0, 20) + "\n" + entry);
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "amid.jsonl"), doctest::Contains("line 1"), mr::data_error);
  save(f / "ended.jsonl", entry + last.substr(0, 20) + "\n");
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "ended.jsonl"), doctest::Contains("line 2"), mr::data_error);
  save(f / "other.jsonl", entry + "{\"key\": \"b");
  CHECK_THROWS_WITH_AS(mr::keys_from(f / "other.jsonl"), doctest::Contains("line 2"), mr::data_error);
}

TEST_CASE("several files, folders and compressed files are one list") {
  const temporary_folder f;
  save(f / "q-0.jsonl", "{\"key\": \"a\"}\n");
  save(f / "q-1.jsonl", "{\"key\": \"b\"}\n{\"key\": \"a\"}");
  save(f / "z.jsonl", "{\"key\": \"z\"}\n");
  REQUIRE(std::system(("gzip " + (f / "z.jsonl")).c_str()) == 0);
  CHECK(mr::keys_from(f / "q-*.jsonl").size() == 2);
  CHECK(mr::keys_from(f / "q-{0,1}.jsonl").size() == 2);
  CHECK(mr::keys_from(std::vector<std::string>{f / "q-0.jsonl", f / "z.jsonl.gz"}).contains("z", "s"));
  CHECK(mr::keys_from(f.path()).size() == 3);
}

TEST_CASE("a missing list is an error, or empty if that is allowed") {
  const temporary_folder f;
  CHECK_THROWS_WITH_AS((void)mr::keys_from(f / "q-*.jsonl"), doctest::Contains("no file matches"), mr::setup_error);
  CHECK(mr::keys_from(f / "q-*.jsonl", {.allow_missing = true}).empty());
  CHECK(mr::keys_from(f / "q-0.jsonl", {.allow_missing = true}).empty());
  save(f / "q-1.jsonl", "{\"key\": \"b\"}\n");
  CHECK(mr::keys_from((f / "q-{0..3}.jsonl") + "::" + (f / "p*.txt"), {.allow_missing = true}).size() == 1);
}

TEST_CASE("a line that has no key is an error that names file and line") {
  const temporary_folder f;
  for (const std::string bad : {"[", "{\"kei\": \"a\"}", "\"a\"", "{\"key\": 5}", "{\"key\": \"\"}",
                                "{\"key\": \"a\"} x", "{\"key_hex\": \"f\"}", "{\"key_hex\": \"fg\"}",
                                "{\"key\": null}", "{\"shard\": \"s\"}", "{\"shard\": \"s\", \"key\": \"\"}",
                                "{\"shard\": null, \"key\": null}",
                                "[{\"key\": \"a\"}]", "{\"shard\": {\"key\": \"b\"}, \"key\": \"a\"}",
                                "{\"shard\": 5, \"key\": \"a\"}", "{\"key\": \"a\", \"key_hex\": []}",
                                "{\"shard_hex\": \"0\", \"key\": \"a\"}", "{\"shard\": \"s\", \"key\": true}"}) {
    CAPTURE(bad);
    save(f / "q.jsonl", "{\"key\": \"good\"}\n" + bad + "\n");
    CHECK_THROWS_WITH_AS((void)mr::keys_from(f / "q.jsonl"), doctest::Contains("line 2"), mr::data_error);
  }
}
