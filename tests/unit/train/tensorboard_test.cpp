#include "fixtures.hpp"

#include <millrace/base/error.hpp>
#include <millrace/train/tensorboard.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

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
