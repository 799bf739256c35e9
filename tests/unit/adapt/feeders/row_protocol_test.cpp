// The texts and bytes between trainer and feeder: each side reads the output of the other, and refuses anything else.
#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::row_answer;

namespace {

using bytes = std::vector<std::byte>;

const mr::row_run here{.order = "millrace version=6 seed=7 data=1f", .columns = "example::pixels [256, 224, 224, 3] u8",
                       .max_row_bytes = 150'528};

std::string difference(std::string_view mine, std::string_view theirs) {
  return mr::detail::feeder_run_difference({.mine = mine, .theirs = theirs, .feeder = "node7:8717"});
}

/// A row, with its own memory.
struct part {
  std::size_t row;
  bytes content;
  std::uint32_t crc;
  bool operator==(const part&) const = default;
};

struct decoded {
  std::vector<part> parts{};
  std::string error{};
  bool operator==(const decoded&) const = default;
};

/// Decodes a body that arrives in pieces of at most `piece` bytes.
decoded decode(const bytes& body, std::size_t rows, std::size_t piece) {
  static mr::detail::row_buffers buffers;   // of all calls
  decoded d;
  mr::detail::feeder_row_decoder decoder({.rows = rows, .max_row_bytes = 40, .buffers = &buffers});
  try {
    for (std::size_t at = 0; at < body.size(); at += piece)
      decoder.add(std::span(body).subspan(at, std::min(piece, body.size() - at)), [&](const row_answer& a) {
        d.parts.push_back({a.row, {a.bytes.begin(), a.bytes.end()}, a.crc});
      });
    decoder.finish();
  } catch (const mr::data_error& e) {
    d.error = e.message();
  }
  return d;
}

/// The same for a complete body, in the obvious way. Errors are not described.
decoded decode_slowly(const bytes& body, std::size_t rows) {
  decoded d;
  std::size_t at = 0;
  const auto number = [&](std::size_t from) {
    std::uint32_t value = 0;
    for (int i = 3; i >= 0; --i) value = value * 256 + std::to_integer<std::uint32_t>(body[from + std::size_t(i)]);
    return value;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    if (body.size() - at < 8) return {d.parts, "error"};
    const std::uint32_t size = number(at), crc = number(at + 4);
    at += 8;
    if (size == 0xffffffff) continue;   // not computed
    if (size > 40 || body.size() - at < size) return {d.parts, "error"};
    const auto content = std::span(body).subspan(at, size);
    d.parts.push_back({row, {content.begin(), content.end()}, crc});
    at += size;
  }
  if (at != body.size()) d.error = "error";
  return d;
}

/// `computed` receives the number of rows that are not missing.
bytes valid_body(mr::rng& random, std::size_t rows, std::size_t& computed) {
  bytes body;
  for (std::size_t i = 0; i < rows; ++i) {
    bytes row(random.below(41));
    for (std::byte& b : row) b = static_cast<std::byte>(random.below(256));
    const bool is_missing = random.below(4) == 0;
    if (is_missing) mr::detail::append_missing_row(body);
    else mr::detail::append_row(body, row);
    computed += !is_missing;
  }
  return body;
}

}  // namespace

TEST_CASE("only the text of the same program and run is accepted") {
  const std::string text = mr::detail::hello_text(here), program = mr::detail::feeder_build_id();
  CHECK(text == "protocol=1\nlibrary=millrace " + std::to_string(MILLRACE_VERSION_MAJOR) + "." +
                    std::to_string(MILLRACE_VERSION_MINOR) + "." + std::to_string(MILLRACE_VERSION_PATCH) +
                    "\nprogram=" + program + "\norder=millrace version=6 seed=7 data=1f\n"
                    "columns=example::pixels [256, 224, 224, 3] u8\nmax_row_bytes=150528\n");
  CHECK(program.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(difference(text, text).empty());
  CHECK(mr::detail::run_id(text).size() == 16);
  CHECK(difference(text, "<html>503</html>").find("got \"<html>503</html>\", expected \"protocol=1\"") !=
        std::string::npos);
  CHECK(!difference(text, text + "more=1\n").empty());
  CHECK(!difference(text, text.substr(0, text.size() - 1)).empty());
  mr::rng random({.seed = 1});
  for (int trial = 0; trial < 2'000; ++trial) {
    std::string damaged = text;
    for (std::uint64_t i = 0; i <= random.below(3); ++i)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    damaged.resize(damaged.size() - random.below(2) * random.below(damaged.size()));
    CHECK(difference(text, damaged).empty() == (damaged == text));
  }
}

TEST_CASE("the build id is that of the program") {
  std::string expected;
  if (FILE* const pipe = ::popen("readelf -n /proc/$PPID/exe 2> /dev/null", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, pipe))
      if (const std::string text(line); text.find("Build ID: ") != std::string::npos)
        expected = text.substr(text.find("Build ID: ") + 10, text.find('\n') - text.find("Build ID: ") - 10);
    ::pclose(pipe);
  }
  if (!expected.empty()) CHECK(mr::detail::feeder_build_id() == expected);
  CHECK_THROWS_WITH_AS(mr::detail::hello_text(here, ""), doctest::Contains("-Wl,--build-id"), mr::setup_error);
}

TEST_CASE("decoders use the buffers of other decoders, one for each row that has not arrived completely") {
  mr::detail::row_buffers buffers;
  bytes body;
  for (int row = 0; row < 3; ++row) mr::detail::append_row(body, bytes(40, std::byte(row)));
  for (int pair = 0; pair < 5; ++pair) {
    const mr::detail::feeder_row_decoder::options options{.rows = 3, .max_row_bytes = 40, .buffers = &buffers};
    mr::detail::feeder_row_decoder first(options), second(options);
    std::size_t rows = 0;
    for (std::size_t at = 0; at < body.size(); at += 7)
      for (auto* decoder : {&first, &second})
        decoder->add(std::span(body).subspan(at, std::min<std::size_t>(7, body.size() - at)), [&](const row_answer& a) {
          rows += a.bytes.size() == 40 && a.crc == mr::crc32c(a.bytes);
        });
    CHECK(rows == 6);
  }
  CHECK(buffers.size() == 2);
}

TEST_CASE("another binary, order or layout is refused with both texts") {
  const std::string mine = "protocol=1\nlibrary=millrace 0.1.0\nprogram=00c0ffee\norder=millrace version=6 seed=7\n"
                           "columns=example::pixels [256, 224, 224, 3] u8\nmax_row_bytes=150528\n";
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string theirs = mine;
    theirs.replace(theirs.find(from), from.size(), to);
    CHECK(mr::detail::run_id(theirs) != mr::detail::run_id(mine));
    return difference(mine, theirs);
  };
  const std::string start = "the feeder node7:8717 computes the rows of another run: ";
  for (const auto& [from, to] : {std::pair("program=00c0ffee", "program=0badf00d"),
                                 {"library=millrace 0.1.0", "library=millrace 0.2.0"},
                                 {"order=millrace version=6 seed=7", "order=millrace version=6 seed=8"}})
    CHECK(message(from, to).starts_with(start + "got \"" + to + "\", expected \"" + from + "\"; all lines must"));
  CHECK(message("columns=example::pixels [256, 224, 224, 3] u8\nmax_row_bytes=150528",
                "columns=example::label [256] i32\nmax_row_bytes=4")
            .starts_with(start + R"(got "columns=example::label [256] i32", expected "columns=example::pixels )" +
                         R"([256, 224, 224, 3] u8"; got "max_row_bytes=4", expected "max_row_bytes=150528"; all)"));
  CHECK(message("00c0ffee", "\x1b[31m").find('\x1b') == std::string::npos);   // not a terminal code
}

TEST_CASE("a path names its range, and everything else is refused") {
  const mr::detail::feeder_rules limits{.run = "00c0ffee00c0ffee"};
  const mr::row_range range{.epoch = 3, .first = 640, .count = 64, .step = 8};
  const std::string path = mr::detail::rows_path(limits.run, range);
  CHECK(path == "/v1/00c0ffee00c0ffee/rows/3/640-64-8");
  CHECK(mr::detail::hello_path(limits.run) == "/v1/00c0ffee00c0ffee/hello");
  CHECK(mr::detail::parse_rows_path(path, limits) == range);
  CHECK(!mr::detail::parse_rows_path("/v1/0badf00d0badf00d/rows/3/640-64-8", limits));
  for (const char* rest :
       {"", "/rows", "/rows/", "/rows/3", "/rows/3/", "/rows/3/640", "/rows/3/640-64", "/rows/3/640-64-",
        "/rows/3/640-0-1", "/rows/3/640-65-1", "/rows/3/640-64-0", "/rows/3/640-64-8/", "/rows/-3/640-64-8",
        "/rows/3/640-64-99999999", "/rows/3/18446744073709551616-1-1", "/rows/3/18446744073709551615-1-1",
        "/rows/3/ 640-64-8", "/rows/0x3/640-64-8", "/../../etc/passwd"})
    CHECK(!mr::detail::parse_rows_path("/v1/00c0ffee00c0ffee" + std::string(rest), limits));
}

TEST_CASE("a body is decoded the same in pieces of any size, and like the obvious decoder, even if it is damaged") {
  mr::rng random({.seed = 2});
  std::size_t valid = 0;
  for (int trial = 0; trial < 3'000; ++trial) {
    const std::size_t rows = 1 + random.below(5);
    std::size_t computed = 0;
    bytes body = valid_body(random, rows, computed);
    const bool damaged = trial % 2 == 1;
    if (damaged) {
      for (std::uint64_t i = 0; i <= random.below(2); ++i)
        body[random.below(body.size())] ^= static_cast<std::byte>(1 << random.below(8));
      if (random.below(3) == 0) body.resize(random.below(body.size()));
      if (random.below(5) == 0) body.push_back(std::byte{0});
    }
    const decoded all = decode(body, rows, body.size() + 1), slow = decode_slowly(body, rows);
    CHECK(all.parts == slow.parts);
    CHECK(all.error.empty() == slow.error.empty());
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, 1 + random.below(60)})
      CHECK(decode(body, rows, piece) == all);
    if (!damaged) {
      CHECK(all.error.empty());
      CHECK(all.parts.size() == computed);
    }
    valid += all.error.empty();
  }
  CHECK(valid < 3'000);
}

TEST_CASE("a feeder that sends wrong sizes is refused, before memory is allocated") {
  const auto error_of = [](bytes body, std::size_t rows) { return decode(body, rows, 5).error; };
  const std::string start = "the answer of a feeder is not valid at row ";
  bytes huge(8);
  std::fill(huge.begin() + 1, huge.begin() + 4, std::byte{255});
  CHECK(error_of(huge, 2) == start + "0 of 2: got 4294967040 bytes, expected at most 40");
  bytes one;
  mr::detail::append_row(one, bytes(40));
  CHECK(error_of(one, 2) == start + "1 of 2: got the end of the answer, expected 2 rows");
  bytes two = one;
  mr::detail::append_row(two, {});
  CHECK(error_of(two, 2).empty());
  CHECK(error_of(two, 1) == start + "1 of 1: got another row, expected the end");
  bytes missing;
  mr::detail::append_missing_row(missing);
  CHECK(error_of(missing, 1).empty());
  CHECK(error_of(missing, 2) == start + "1 of 2: got the end of the answer, expected 2 rows");
}
