#include "../../eventually.hpp"
#include "fixtures.hpp"

#include <millrace/base/error.hpp>
#include <millrace/base/json_writer.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/train/json_lines.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <sys/wait.h>

namespace mr = millrace;

namespace {

std::string line_of(const mr::row& r) {
  const temporary_folder folder;
  mr::json_lines sink(folder / "a.jsonl");
  sink.write(r);
  sink.close();
  return content_of(folder / "a.jsonl");
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

}  // namespace

TEST_CASE("a row is one line of JSON") {
  CHECK(line_of({.step = 7, .epoch = 2, .unix_ns = 1'700'000'000'250'000'000,
                 .values = {{"loss", 0.1}, {"samples", 12800}, {"tiny", 1e-300}, {"big", 1e300}}}) ==
        "{\"step\":7,\"epoch\":2,\"time\":1700000000.25,\"loss\":0.1,\"samples\":12800,"
        "\"tiny\":1e-300,\"big\":1e+300}\n");
  CHECK(line_of({.step = 1, .unix_ns = 1'000'000'000, .message = "warm-up over"}) ==
        "{\"step\":1,\"time\":1,\"message\":\"warm-up over\"}\n");
  CHECK(line_of({.step = 1, .unix_ns = 1}).empty());
}

TEST_CASE("values that are not finite become null and are counted") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(line_of({.step = 1, .unix_ns = 1'000'000'000, .values = {{"a", nan}, {"b", inf}, {"c", -inf}, {"d", 1}}}) ==
        "{\"step\":1,\"time\":1,\"a\":null,\"b\":null,\"c\":null,\"d\":1,\"nonfinite\":3}\n");
  CHECK(line_of({.step = 1, .unix_ns = 1'000'000'000, .values = {{"a", nan}}, .nonfinite = 64}) ==
        "{\"step\":1,\"time\":1,\"a\":null,\"nonfinite\":64}\n");
}

TEST_CASE("names and messages of any bytes stay valid JSON in UTF-8") {
  using mr::detail::append_json_string;
  const auto quoted = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  };
  CHECK(quoted("say \"a\\b\"\n\t\x01") == "\"say \\\"a\\\\b\\\"\\u000a\\u0009\\u0001\"");
  // control characters beyond ASCII, which a terminal obeys, and characters that some readers treat as a line end
  CHECK(quoted("\x7f|\xc2\x80|\xc2\x9b|\xc2\x9f|\xc2\xa0") == "\"\\u007f|\\u0080|\\u009b|\\u009f|\xc2\xa0\"");
  CHECK(quoted("\xe2\x80\xa7|\xe2\x80\xa8|\xe2\x80\xa9|\xe2\x80\xaa|\xe2\x80\xae|\xe2\x80\xaf") ==
        "\"\xe2\x80\xa7|\\u2028|\\u2029|\\u202a|\\u202e|\xe2\x80\xaf\"");
  CHECK(quoted("\xe2\x81\xa5|\xe2\x81\xa6|\xe2\x81\xa9|\xe2\x81\xaa") ==
        "\"\xe2\x81\xa5|\\u2066|\\u2069|\xe2\x81\xaa\"");
  const std::string good = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80";
  CHECK(quoted(good) == "\"" + good + "\"");
  // stray continuation, overlong form, surrogate, beyond U+10FFFF, cut off at the end
  CHECK(quoted("\x80") == "\"\xef\xbf\xbd\"");
  CHECK(quoted("\xc0\xaf") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(quoted("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(quoted("\xf4\x90\x80\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(quoted("a\xe2\x82") == "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_CASE("an existing file is continued, and a line that was cut off is removed") {
  const temporary_folder folder;
  const std::string path = folder / "run.jsonl";
  const mr::row next{.step = 9, .unix_ns = 1'000'000'000, .values = {{"x", 1}}};
  const std::string next_line = "{\"step\":9,\"time\":1,\"x\":1}\n";
  const std::string record = "{\"step\":1,\"note\":\"} \\\" {\"}\n";
  const std::string last = "{\"step\":2,\"note\":\"brace } inside\",\"y\":2}";
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    write_file(path, record + last.substr(0, cut));
    mr::json_lines(path).write(next);
    CHECK(content_of(path) == record + (cut == last.size() ? last + "\n" : "") + next_line);
  }
  // longer than one read, and no line before it
  write_file(path, "{\"step\":2,\"message\":\"" + std::string(200'000, 'x'));
  mr::json_lines(path).write(next);
  CHECK(content_of(path) == next_line);
}

TEST_CASE("two logs do not write to one file") {
  const temporary_folder folder;
  const mr::json_lines first(folder / "run.jsonl");
  CHECK_THROWS_AS(mr::json_lines(folder / "run.jsonl"), mr::setup_error);
}

TEST_CASE("a path that cannot be written is an error that names it") {
  const temporary_folder folder;
  try {
    mr::json_lines(folder / "missing/run.jsonl");
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(e.message().find("missing/run.jsonl") != std::string::npos);
  }
}

TEST_CASE("a full disk is an error, and leaves no partial record") {
  mr::json_lines full("/dev/full");
  CHECK_THROWS_AS(full.write({.step = 1, .values = {{"x", 1}}}), mr::io_error);

  const temporary_folder folder;
  const std::string path = folder / "run.jsonl";
  mr::json_lines sink(path);
  sink.write({.step = 1, .unix_ns = 1'000'000'000, .values = {{"x", 1}}});
  const std::string before = content_of(path);
  // A limit on the file's size lets write() succeed partially first, like a disk that fills up.
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = before.size() + 10, .rlim_max = old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_AS(sink.write({.step = 2, .values = {{"x", 2}}}), mr::io_error);
  const std::string after = content_of(path);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  CHECK(after == before);
  sink.write({.step = 3, .unix_ns = 1'000'000'000, .values = {{"x", 3}}});
  CHECK(content_of(path) == before + "{\"step\":3,\"time\":1,\"x\":3}\n");
}

TEST_CASE("a process killed while it logs leaves complete records") {
  const temporary_folder folder;
  const std::string path = folder / "run.jsonl";
  std::size_t lines = 0;
  for (int round = 0; round < 5; ++round) {
    const std::size_t before = content_of(path).size();
    const pid_t child = ::fork();
    if (child == 0) {
      mr::json_lines sink(path);
      for (std::uint64_t s = 0;; ++s)
        sink.write({.step = s, .values = {{"loss", 0.5}}, .message = std::string(s % 9'000, 'm')});
    }
    std::error_code none;
    CHECK(eventually([&] { return std::filesystem::exists(path) && std::filesystem::file_size(path, none) > before; }));
    ::usleep(5'000);   // somewhere in a record
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    { const mr::json_lines repaired(path); }
    std::string text = content_of(path);
    lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
      const std::size_t end = text.find('\n', at);
      REQUIRE(end != std::string::npos);
      REQUIRE(mr::detail::is_complete_json_object(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
  }
  CHECK(lines > 0);
}
