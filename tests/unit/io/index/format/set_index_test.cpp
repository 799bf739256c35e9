// The text of a set index: a round trip preserves it, every change of it is detected, and names are validated.
#include <millrace/base/crc32c.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/index/format/set_index.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;
using mr::detail::set_index;

namespace {

set_index some() {
  return set_index({{.name = "b/train 1.tar", .size_bytes = 10'240, .samples = 3, .fingerprint = 0xfedc,
                     .index_bytes = 300, .version = "\"etag-1\""},
                    {.name = "a%.tar", .size_bytes = 1'024, .samples = 0, .without_end_marker = true},
                    {.name = "b/\xc3\xbc\n.tar", .size_bytes = 1'536, .samples = 1, .version = "-"}});
}

/// Returns the defect of a text; empty if there is none.
std::string wrong_with(const std::string& text) {
  try {
    (void)set_index::parse(text, "where");
    return {};
  } catch (const mr::data_error& e) {
    CHECK(e.where().shard == "where");
    CHECK(e.where().offset_bytes <= text.size());
    return e.message();
  }
}

/// Returns lines as a complete text, with the right end.
std::string with_end(std::size_t shards, const std::string& lines) {
  const std::string body = "millrace set index 1\n" + lines;
  return body + "end " + std::to_string(shards) + " " + mr::detail::hex(mr::crc32c(mr::detail::bytes_of(body)), 8) +
         "\n";
}

}  // namespace

TEST_CASE("a set index is restored from its text, sorted by names") {
  const set_index index = some(), again = set_index::parse(index.text(), "where");
  CHECK(again.shards() == index.shards());
  CHECK(again.text() == index.text());
  CHECK(again.shards().front().name == "a%.tar");
  CHECK(set_index::parse(set_index().text(), "where").shards().empty());
}

TEST_CASE("every cut, every flipped bit and every additional byte of a set index is detected") {
  const std::string text = some().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(wrong_with(text.substr(0, i)).empty());
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      CHECK_FALSE(wrong_with(changed).empty());
    }
  }
  CHECK_FALSE(wrong_with(text + "\n").empty());
  CHECK_FALSE(wrong_with(text + text).empty());
}

TEST_CASE("a set index that an attacker wrote, checksum and all, contains only entries that a shard can have") {
  const std::string digest = " 0000000000000001 ";
  const auto line = [&](const std::string& size, const std::string& samples, const std::string& rest) {
    return size + " " + samples + digest + rest + "\n";
  };
  CHECK(wrong_with(with_end(1, line("1024", "2", "0 marked - x.tar"))).empty());
  for (const std::string& bad :
       {line("1024", "3", "0 marked - x.tar"), line("2199023255553", "1", "0 marked - x.tar"),
        line("18446744073709551616", "1", "0 marked - x.tar"), line("01024", "1", "0 marked - x.tar"),
        line("-1", "0", "0 marked - x.tar"), line("2199023255552", "4294967295", "0 marked - x.tar"),
        line("1024", "1", "2000000 marked - x.tar"), line("1024", "1", "0 maybe - x.tar"),
        line("1024", "1", "0 marked  x.tar"), line("1024", "1", "0 marked - "), line("1024", "1", "0 marked - a b"),
        line("1024", "1", "0 marked - a%2"), line("1024", "1", "0 marked - a%zz"), line("1024", "1", "0 marked - %41"),
        line("1024", "1", "0 marked - %C3"), line("1024", "1", "0 marked - \x01"),
        std::string("1024 1 1 0 marked - x.tar\n"), std::string("1024 1 000000000000000G 0 marked - x.tar\n")})
    CHECK_FALSE(wrong_with(with_end(1, bad)).empty());
  const std::string x = line("1024", "1", "0 marked - x.tar"), y = line("1024", "1", "0 marked - y.tar");
  CHECK(wrong_with(with_end(2, x + y)).empty());
  CHECK(wrong_with(with_end(2, y + x)).find("not sorted") != std::string::npos);
  CHECK(wrong_with(with_end(2, x + x)).find("twice") != std::string::npos);
  CHECK(wrong_with(with_end(3, x + y)).find("number of shards is wrong") != std::string::npos);
}

TEST_CASE("a shard is found by the end of its name, at a slash, and the longest name wins") {
  const set_index index({{.name = "x.tar", .size_bytes = 1}, {.name = "b/x.tar", .size_bytes = 2},
                         {.name = "/data/y.tar", .size_bytes = 3}});
  const auto size_of = [&](std::string_view name) {
    const auto entry = index.find(name);
    return entry ? entry->size_bytes : 0;
  };
  CHECK(size_of("x.tar") == 1);
  CHECK(size_of("s3://bucket/a/x.tar") == 1);
  CHECK(size_of("s3://bucket/b/x.tar") == 2);
  CHECK(size_of("/data/y.tar") == 3);
  CHECK(size_of("data/y.tar") == 0);
  CHECK(size_of("s3://bucket/max.tar") == 0);
  CHECK(size_of("") == 0);
  CHECK(size_of("x.tar/") == 0);
}
