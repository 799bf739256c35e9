#include <millrace/base/error.hpp>
#include <millrace/base/notice.hpp>
#include <millrace/base/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace mr = millrace;
using millrace::detail::utf8_prefix_bytes;

namespace {

/// Table 3-7 of the Unicode Standard, byte by byte.
std::size_t slow_prefix(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto in = [&](std::size_t at, unsigned from, unsigned to) { return byte(at) >= from && byte(at) <= to; };
  const auto follows = [&](std::size_t at) { return in(at, 0x80, 0xbf); };
  for (std::size_t at = 0;;) {
    if (at >= text.size()) return text.size();
    if (byte(at) < 0x80) at += 1;
    else if (in(at, 0xc2, 0xdf) && follows(at + 1)) at += 2;
    else if (byte(at) == 0xe0 && in(at + 1, 0xa0, 0xbf) && follows(at + 2)) at += 3;
    else if ((in(at, 0xe1, 0xec) || in(at, 0xee, 0xef)) && follows(at + 1) && follows(at + 2)) at += 3;
    else if (byte(at) == 0xed && in(at + 1, 0x80, 0x9f) && follows(at + 2)) at += 3;
    else if (byte(at) == 0xf0 && in(at + 1, 0x90, 0xbf) && follows(at + 2) && follows(at + 3)) at += 4;
    else if (in(at, 0xf1, 0xf3) && follows(at + 1) && follows(at + 2) && follows(at + 3)) at += 4;
    else if (byte(at) == 0xf4 && in(at + 1, 0x80, 0x8f) && follows(at + 2) && follows(at + 3)) at += 4;
    else return at;
  }
}

}  // namespace

TEST_CASE("all pairs of bytes, with any next byte, at every distance from the end") {
  std::size_t differ = 0;
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second)
      for (const unsigned third : {0x00U, 0x41U, 0x7fU, 0x80U, 0xbfU, 0xc0U, 0xffU})
        for (const unsigned fourth : {0x41U, 0x80U, 0xbfU, 0xc2U})
          for (const std::size_t length : {1U, 2U, 3U, 4U}) {
            const char bytes[4] = {static_cast<char>(first), static_cast<char>(second), static_cast<char>(third),
                                   static_cast<char>(fourth)};
            const std::string_view text(bytes, length);
            differ += utf8_prefix_bytes(text) != slow_prefix(text);
          }
  CHECK(differ == 0);
}

TEST_CASE("one bad byte anywhere in texts of many lengths, ASCII or not") {
  std::mt19937 random(7);
  const std::vector<std::string> characters{"a", "b", "\n", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80",
                                            "\xed\x9f\xbf"};
  for (std::size_t length = 0; length < 120; ++length)
    for (const std::size_t kinds : {std::size_t{1}, std::size_t{3}, characters.size()}) {
      std::string text;
      while (text.size() < length) text += characters[random() % kinds];
      CHECK(utf8_prefix_bytes(text) == text.size());
      for (int i = 0; i < 20 && !text.empty(); ++i) {
        std::string damaged = text;
        damaged[random() % text.size()] = static_cast<char>(random());
        CHECK(utf8_prefix_bytes(damaged) == slow_prefix(damaged));
        damaged.resize(random() % damaged.size());
        CHECK(utf8_prefix_bytes(damaged) == slow_prefix(damaged));
      }
    }
}

TEST_CASE("invalid UTF-8 becomes U+FFFD byte by byte, and the rest stays") {
  const std::string bad = "\xef\xbf\xbd";
  const auto clean = [](std::string text) {
    millrace::detail::clean_utf8(text);
    return text;
  };
  CHECK(clean("").empty());
  CHECK(clean("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(clean("\xff") == bad);
  CHECK(clean("a\xc3") == "a" + bad);
  CHECK(clean("\xe2\x82" "b\xff\xc3\xa9") == bad + bad + "b" + bad + "\xc3\xa9");
  CHECK(clean(std::string("nul\0\x80", 5)) == std::string("nul\0", 4) + bad);
}

TEST_CASE("sort_names() sorts like std::sort, from an index on") {
  std::mt19937 random(7);
  for (std::size_t count : {0U, 1U, 2U, 7U, 300U}) {
    std::vector<std::string> names(count);
    for (std::string& name : names)
      for (auto size = random() % 20; size > 0; --size) name.push_back(static_cast<char>("ab\x80\xff"[random() % 4]));
    for (std::size_t first : {std::size_t{0}, count / 2, count}) {
      auto expected = names, sorted = names;
      std::sort(expected.begin() + static_cast<std::ptrdiff_t>(first), expected.end());
      millrace::detail::sort_names(sorted, first);
      CHECK(sorted == expected);
    }
  }
}

TEST_CASE("an error contains the problem, the place and the remedy") {
  const mr::data_error e("the header is damaged", "Fetch the shard again",
                         {.stage = "tar", .shard = "a.tar", .key = "k\n1", .offset_bytes = 512, .position = 7});
  CHECK(std::string(e.what()) ==
        "millrace: the header is damaged (shard a.tar, offset 512, key k\\x0a1, stage tar, position 7). "
        "Fetch the shard again");
}

TEST_CASE("a located exception keeps its type and its own fields") {
  std::exception_ptr located;
  try {
    throw mr::data_error("bad label", "", {.key = "inner"});
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar", .key = "outer", .position = 3});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "inner");
    CHECK(e.where().shard == "s.tar");
    CHECK(e.where().position == 3);
  }
}

TEST_CASE("a foreign exception becomes a stage_error that contains it") {
  std::exception_ptr located;
  try {
    throw std::out_of_range("index 9");
  } catch (...) {
    located = mr::located_exception({.stage = "map 1"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::stage_error& e) {
    CHECK(e.message() == "index 9");
    CHECK_THROWS_AS(std::rethrow_exception(e.cause()), std::out_of_range);
  }
}

TEST_CASE("exhausted memory is a failure of the machine, with its location") {
  std::exception_ptr located;
  try {
    throw std::bad_alloc();
  } catch (...) {
    located = mr::located_exception({.stage = "map 1", .shard = "s.tar"});
  }
  try {
    std::rethrow_exception(located);
  } catch (const mr::io_error& e) {
    CHECK(e.message() == "memory is exhausted: the system refused an allocation");
    CHECK(e.where().shard == "s.tar");
  }
}

TEST_CASE("a notice function calls its callable, and its copies do, too") {
  std::string texts;
  mr::notice_function first = [&](const mr::notice& n) { texts += n.text; };
  const mr::notice_function second = first;
  first({.text = "a"});
  second({.text = "b"});
  CHECK(texts == "ab");
  CHECK(first);
  CHECK(second.informs());
}

TEST_CASE("an empty function is not a notice function") {
  CHECK_FALSE(mr::notice_function());
  CHECK_FALSE(mr::notice_function(nullptr));
  CHECK_FALSE(mr::notice_function(std::function<void(const mr::notice&)>()));
  CHECK(mr::notice_function().informs());   // then all notices are printed
  CHECK(mr::notice_function([](const mr::notice&) {}));
}

TEST_CASE("quiet uses no information, and neither do its copies") {
  const mr::notice_function first = mr::quiet;
  const mr::notice_function second = first;
  CHECK(second);
  CHECK_FALSE(second.informs());
}
