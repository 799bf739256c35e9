// What is a line, and what is told of a file that cannot be read to its end.
#include <millrace/sources/line_reader.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <random>

namespace mr = millrace;
using namespace tar_test;

namespace {

struct lines_read {
  std::vector<std::string> texts{};
  std::vector<std::uint64_t> numbers{}, offsets{};
  std::string error{};
  friend bool operator==(const lines_read&, const lines_read&) = default;
};

lines_read read_lines(std::string file, mr::line_reader_options options = {}) {
  lines_read all;
  mr::line_reader reader(std::make_unique<memory_source>(std::move(file)), shared_pool(), options);
  try {
    while (auto one = reader.next()) {
      all.texts.emplace_back(one->text());
      all.numbers.push_back(one->number());
      all.offsets.push_back(one->offset_bytes());
      if (one->number() % 64 != 1) continue;   // what errors name, of some of each block
      REQUIRE(one->origin().where().key == "line " + std::to_string(one->number()));
      REQUIRE(mr::detail::location_of(one->field()).key == one->origin().key());
    }
  } catch (const mr::error& e) {
    all.error = e.what();
    CHECK_THROWS(static_cast<void>(reader.next()));
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
  CHECK(read_lines("BZhang wrote this\n").texts == texts{"BZhang wrote this"});   // and it is no bzip2
  const lines_read sparse = read_lines("a\n\n\r\nb\n\n", {.skip_empty = true});
  CHECK(sparse.texts == texts{"a", "b"});
  CHECK(sparse.numbers == std::vector<std::uint64_t>{1, 4});
  CHECK(sparse.offsets == std::vector<std::uint64_t>{0, 5});
}

TEST_CASE("random files: as character by character, plain and through every compression") {
  std::mt19937 random(11);
  const auto make = [&](std::size_t bytes, std::size_t line) {
    std::string file = random() % 2 ? "\xef\xbb\xbf" : "";
    while (file.size() < bytes) {
      for (std::size_t left = random() % line; left > 0; --left) file += random() % 50 ? 'x' : '\r';
      file += random() % 3 ? "\n" : random() % 2 ? "\r\n" : "\xc3\xa9\n";
    }
    if (random() % 2) file.pop_back();
    return file;
  };
  for (const std::size_t line : {3U, 40U, 3'000U, 700'000U})
    for (const std::size_t bytes : {2'000U, 1'200'000U}) {
      const std::string file = make(bytes, line);
      CHECK((read_lines(file) == read_slowly(file)));
    }
  const std::string file = make(700'000, 90), two = file + "end\n" + file;
  for (const std::string command : {"gzip -c", "bzip2 -c", "xz -c", "zstd -qc", "lz4 -qc"}) {
    if (!have(command.substr(0, command.find(' ')))) continue;
    CAPTURE(command);
    CHECK((read_lines(through(command, file)) == read_slowly(file)));
    CHECK((read_lines(through(command, file + "end\n") + through(command, file)) == read_slowly(two)));
    CHECK(read_lines(through(command, "")).texts.empty());
  }
}

TEST_CASE("what is no UTF-8 is named with file, line and offset, behind the lines before it") {
  std::string file;
  for (int i = 0; i < 1'000; ++i) file += "all is well \xc3\xa9\n";
  const lines_read bad = read_lines(file + "caf\xe9 au lait\nfine again\n");
  CHECK(bad.texts.size() == 1'000);
  CHECK(bad.error.find("line 1001 is not valid UTF-8: its byte 4 begins '\\xe9 au'") != std::string::npos);
  CHECK(bad.error.find("offset 15003, key line 1001, stage lines") != std::string::npos);
  CHECK(read_lines(file + "caf\xe9\nfine\n", {.check_utf8 = false}).texts.size() == 1'002);
  // A character cut in two by the end of a line is none.
  CHECK(read_lines("\xe4\xb8\n\xad\n").error.find("line 1 is not valid UTF-8") != std::string::npos);
  CHECK(read_lines("a\nb\xc3").error.find("line 2 is not valid UTF-8") != std::string::npos);
  CHECK(read_lines(std::string("\xff\xfe" "a\0\n\0", 6)).error.find("the mark of UTF-16") != std::string::npos);
}

TEST_CASE("a line that is too long is an error before it is held") {
  const mr::line_reader_options eight{.max_line_bytes = 8};
  CHECK(read_lines("12345678\r\n12345678", eight).texts == texts{"12345678", "12345678"});
  CHECK(read_lines("\xef\xbb\xbf" "12345678\n", eight).texts == texts{"12345678"});
  const lines_read long_line = read_lines("a\n123456789\nb\n", eight);
  CHECK(long_line.texts == texts{"a"});
  CHECK(long_line.error.find("line 2 has 9 bytes (expected: at most 8)") != std::string::npos);
  CHECK(long_line.error.find("offset 2, key line 2") != std::string::npos);
  CHECK(read_lines("a\n" + std::string(3'000'000, 'x'), eight).error.find("line 2 has at least ") != std::string::npos);
}

TEST_CASE("of a line that is too long and one that is no UTF-8 the first is the error, behind the lines before it") {
  const mr::line_reader_options eight{.max_line_bytes = 8};
  const lines_read both = read_lines("good\n\xff and too long\nfine\n", eight);
  CHECK(both.texts == texts{"good"});
  CHECK(both.error.find("line 2 has 14 bytes (expected: at most 8)") != std::string::npos);
  const lines_read text_first = read_lines("good\n\xff\nfine\ntoo long a line\n", eight);
  CHECK(text_first.texts == texts{"good"});
  CHECK(text_first.error.find("line 2 is not valid UTF-8") != std::string::npos);
  CHECK(read_lines("good\nfine\n\xff and too long\n", eight).texts == texts{"good", "fine"});
}

TEST_CASE("a compressed file that is cut off or damaged gives its whole lines, then the error") {
  std::string file;
  std::mt19937 random(3);
  for (int i = 0; i < 60'000; ++i) file += std::to_string(random()) + "\n";
  const std::string packed = through("gzip -c", file);
  const lines_read whole = read_slowly(file), cut = read_lines(packed.substr(0, packed.size() / 2));
  CHECK(cut.texts.size() > 10'000);
  CHECK(std::equal(cut.texts.begin(), cut.texts.end(), whole.texts.begin()));
  CHECK(cut.error.find("the gzip stream is cut short") != std::string::npos);
  CHECK(cut.error.find(", after line " + std::to_string(cut.texts.size())) != std::string::npos);
  std::string damaged = through("xz -c", file);
  damaged[damaged.size() / 2] ^= 1;
  CHECK(read_lines(damaged).error.find("the xz stream is damaged or cut short") != std::string::npos);
}

TEST_CASE("one flipped bit in a compressed file of lines: the same lines, or an error by the end of the file") {
  std::string file;
  std::mt19937 random(4);
  for (int i = 0; i < 12'000; ++i) file += "line " + std::to_string(random()) + "\n";
  const lines_read whole = read_slowly(file);
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
      const lines_read found = read_lines(flipped);
      refused += !found.error.empty();
      if (found.error.empty()) CHECK((found == whole));
      // Whatever the damage makes of the lines, it is the stream that is told to be damaged.
      else CHECK(found.error.find(" stream is damaged") != std::string::npos);
    }
    CHECK(refused > flips * 9 / 10);
  }
}
