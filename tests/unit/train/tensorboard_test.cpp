#include <millrace/base/error.hpp>
#include <millrace/base/json_writer.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/train/json_lines.hpp>
#include <millrace/train/tensorboard.hpp>

#include "../../eventually.hpp"
#include "fixtures.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace mr = millrace;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  char two[4];
  for (const char c : bytes) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += two;
  }
  return text;
}

mr::encoded_image picture() {
  return {.name = "augmented", .file = std::vector<std::byte>(300, std::byte{0xd8}), .width = 224, .height = 160};
}

}  // namespace

TEST_CASE("the masked checksum and the frame are TensorFlow's") {
  CHECK(mr::detail::masked_crc32c("123456789") == 0xc78ab0e5U);
  const std::string record = mr::detail::tfrecord(std::string(24, 'x'));
  CHECK(hex(record.substr(0, 12)) == "1800000000000000a37f4b22");
  CHECK(record.size() == 24 + 16);
}

TEST_CASE("events have known bytes") {
  // wall_time 1.5 | step 300 | summary { value { tag "loss", simple_value 0.25 } value { tag "nonfinite", 3.0 } }
  CHECK(hex(mr::detail::tensorboard_event(
            {.step = 300, .unix_ns = 1'500'000'000, .values = {{"loss", 0.25}}, .nonfinite = 3})) ==
        "09000000000000f83f" "10ac02" "2a1f"
        "0a0b" "0a046c6f7373" "150000803e"
        "0a10" "0a096e6f6e66696e697465" "1500004040");
  // value { tag "p", image { height 160, width 224, colorspace 3, bytes "abc" } }
  CHECK(hex(mr::detail::tensorboard_event({.step = 1, .unix_ns = 0,
                                           .images = {{.name = "p",
                                                       .file = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}},
                                                       .width = 224,
                                                       .height = 160}}})) ==
        "090000000000000000" "1001" "2a14"
        "0a12" "0a0170" "220d" "08a001" "10e001" "1803" "2203616263");
}

TEST_CASE("a file begins with its version, and every sink starts its own") {
  const temporary_folder folder;
  fake_clock clock;
  const mr::tensorboard first({.folder = folder / "runs/a", .now = clock});
  const mr::tensorboard second({.folder = folder / "runs/a", .now = clock});
  CHECK(first.path() != second.path());
  CHECK(first.path().find("/events.out.tfevents.1700000000.") != std::string::npos);
  const std::string start = content_of(first.path());
  CHECK(hex(start.substr(0, 12)) == "1800000000000000a37f4b22");
  CHECK(hex(start.substr(12, 9)) == "0900001040fc54d941");
  CHECK(start.substr(21, 15) == "\x1a\x0d" "brain.Event:2");
}

TEST_CASE("rows without numbers or images leave no event") {
  const temporary_folder folder;
  mr::tensorboard sink(folder / "a");
  const std::size_t before = content_of(sink.path()).size();
  sink.write({.step = 1, .message = "text"});
  CHECK(content_of(sink.path()).size() == before);
  sink.write({.step = 1, .images = {picture()}});
  CHECK(content_of(sink.path()).size() > before + 300);
}

TEST_CASE("a folder that cannot be created is an error that names it") {
  const temporary_folder folder;
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_AS(mr::tensorboard(folder / "file/run"), mr::io_error);
  CHECK_THROWS_AS(mr::tensorboard(""), mr::setup_error);
}

TEST_CASE("TensorBoard's own reader finds every scalar and image") {
  if (std::system("python3 -c 'import tensorboard' >/dev/null 2>&1") != 0) {
    std::puts("skipped: TensorBoard's own reader (python3 cannot import tensorboard)");
    return;
  }
  const temporary_folder folder;
  mr::tensorboard sink(folder / "run");
  for (std::uint64_t s = 0; s < 300; ++s)
    sink.write({.step = s, .epoch = s / 100, .unix_ns = static_cast<std::int64_t>(s) * 1'000'000'000,
                .values = {{"loss", 1.0 / (1 + static_cast<double>(s))}}});
  sink.write({.step = 300, .unix_ns = 0, .images = {picture()}});
  sink.close();
  std::ofstream(folder / "read.py") << R"(
import sys
from tensorboard.backend.event_processing import event_accumulator
a = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={'scalars': 0, 'images': 0})
a.Reload()
loss = a.Scalars('loss')
assert [e.step for e in loss] == list(range(300))
assert all(e.wall_time == e.step and abs(e.value - 1 / (1 + e.step)) < 1e-7 for e in loss)
assert [e.value for e in a.Scalars('epoch')] == [s // 100 for s in range(300)]
image = a.Images('augmented')[0]
assert (image.step, image.width, image.height) == (300, 224, 160)
assert image.encoded_image_string == b'\xd8' * 300
)";
  CHECK(std::system(("python3 " + folder / "read.py " + folder.path() + "/run").c_str()) == 0);
}

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
      REQUIRE(mr::detail::is_complete_json_line(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
  }
  CHECK(lines > 0);
}
