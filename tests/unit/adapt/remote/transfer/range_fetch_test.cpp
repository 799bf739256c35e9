// Ranges that are fetched: a waiting reader gets the right bytes by each path; answers, the window ahead, and memory.
#include <millrace/adapt/remote/transfer/fetch_window.hpp>
#include <millrace/adapt/remote/transfer/part_memory.hpp>
#include <millrace/adapt/remote/transfer/fetch_attempt.hpp>
#include <millrace/adapt/remote/transfer/range_fetch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::range_fetch;
using mr::detail::http_answer_kind;
using mr::detail::byte_interval;
using mr::detail::parse_content_range;
using mr::detail::fetch_window;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

struct fetched {
  std::vector<std::byte> expected = some_bytes(3 << 20), memory = std::vector<std::byte>(expected.size());
  std::shared_ptr<mr::detail::transfer_object> object = std::make_shared<mr::detail::transfer_object>();
  range_fetch range{object, 1000, memory};

  void send(std::size_t from, std::size_t end) {
    range.take(1000 + from, std::span<const std::byte>(expected).subspan(from, end - from));
  }
  bool reads_right(std::size_t from, std::size_t bytes) {
    std::vector<std::byte> got(bytes);
    range.wait_into(from, got);
    return std::equal(got.begin(), got.end(), expected.begin() + static_cast<std::ptrdiff_t>(from));
  }
};

}  // namespace

TEST_CASE("bytes that arrive before they are requested stay there") {
  fetched f;
  f.send(0, f.expected.size());
  CHECK(f.reads_right(0, 1 << 20));
  CHECK(f.reads_right(0, 2 << 20));
  CHECK(f.range.buffered_from() == 0);
}

TEST_CASE("a waiting reader gets the arriving bytes, in pieces of any size, some of them twice") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    fetched f;
    std::thread network([&] {
      std::mt19937 random(seed);
      for (std::size_t at = 0; at < f.expected.size();) {
        const std::size_t from = at - std::min<std::size_t>(at, random() % 5'000);   // those of a second request
        const std::size_t end = std::min(f.expected.size(), at + 1 + random() % 300'000);
        f.send(from, end);
        at = end;
        if (random() % 4 == 0) std::this_thread::yield();
      }
    });
    std::mt19937 random(seed + 1'000);
    bool right = true;
    for (std::size_t at = 0; at < f.expected.size();) {
      const std::size_t bytes = std::min<std::size_t>(f.expected.size() - at, 1 + random() % 900'000);
      right = right && f.reads_right(at, bytes);
      right = right && f.range.buffered_from() <= at + bytes;
      at += bytes;
    }
    network.join();
    CHECK(right);
  }
}

TEST_CASE("a reader that arrives in the middle of a copy gets the following bytes in the right place") {
  // The copy needs some milliseconds.
  std::vector<std::byte> expected(48 << 20), memory(expected.size()), got(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::byte>(i * i >> 12);
  for (int round = 0; round < 5; ++round) {
    range_fetch range(std::make_shared<mr::detail::transfer_object>(), 0, memory);
    std::fill(got.begin(), got.end(), std::byte{});
    std::thread reader([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      range.wait_into(0, got);
    });
    constexpr std::size_t first = 40 << 20;
    range.take(0, std::span<const std::byte>(expected).first(first));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    range.take(first, std::span<const std::byte>(expected).subspan(first));
    reader.join();
    CHECK(got == expected);
  }
}

TEST_CASE("a reader does not wait for copies of later bytes") {
  std::vector<std::byte> bytes(48 << 20), memory(bytes.size());
  for (int round = 0; round < 5; ++round) {
    range_fetch range(std::make_shared<mr::detail::transfer_object>(), 0, memory);
    constexpr std::size_t read = 1 << 20;
    std::thread reader([&] {
      std::vector<std::byte> got(read);
      range.wait_into(0, got);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    range.take(0, std::span<const std::byte>(bytes).first(read));
    range.take(read, std::span<const std::byte>(bytes).subspan(read));   // nobody waits for this, so it wakes nobody
    reader.join();
  }
}

TEST_CASE("bytes that went to a waiting reader are reported missing from the memory") {
  fetched f;
  f.send(0, 1'000);
  std::thread network([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    f.send(1'000, f.expected.size());
  });
  CHECK(f.reads_right(0, 1 << 20));
  network.join();
  const auto buffered_from = static_cast<std::ptrdiff_t>(f.range.buffered_from());
  CHECK((buffered_from == 0 || buffered_from == 1 << 20));   // 0: the bytes arrived first, on a busy machine
  CHECK(std::equal(f.memory.begin() + buffered_from, f.memory.end(), f.expected.begin() + buffered_from));
}

TEST_CASE("small reads leave their bytes in the memory") {
  fetched f;
  std::thread network([&] { f.send(0, 100'000); });
  CHECK(f.reads_right(0, 50'000));
  CHECK(f.range.buffered_from() == 0);
  CHECK(f.reads_right(10, 99'000));
  network.join();
}

TEST_CASE("a fetch that fails in the middle of a read is an error, and nothing is written after it") {
  fetched f;
  f.send(0, 1'000);
  std::thread network([&] {
    f.send(1'000, 400'000);
    f.range.fail(std::make_exception_ptr(std::runtime_error("gone")));
  });
  std::vector<std::byte> got(2 << 20);
  CHECK_THROWS_WITH(f.range.wait_into(0, got), "gone");
  network.join();
  const std::vector<std::byte> unchanged = got;
  f.send(400'000, 2 << 20);
  CHECK(got == unchanged);
}

namespace {

mr::detail::judged_answer judged(const byte_interval& request, const mr::file_identity* expected, int status,
                                 const mr::detail::header_list& headers) {
  return mr::detail::judge_answer(request, expected, {status, headers});
}

}  // namespace

TEST_CASE("Content-Range contains the range of the bytes and their total number") {
  const auto content = parse_content_range("bytes 0-99/1234");
  REQUIRE(content);
  CHECK(content->range->first_byte == 0);
  CHECK(content->range->end_byte == 100);
  CHECK(content->total_bytes == 1234);
  CHECK_FALSE(parse_content_range("Bytes 7-7/*")->total_bytes);
  CHECK(parse_content_range("bytes */0")->total_bytes == 0);
  CHECK_FALSE(parse_content_range("bytes */5")->range);
  for (const char* wrong : {"", "bytes", "bytes ", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9", "bytes -9/10",
                            "bytes 0-/10", "bytes 0-9/x", "items 0-9/10", "bytes */*", "bytes 0-9/10, 20-29/40",
                            "bytes 0-18446744073709551615/*", "bytes 0-99999999999999999999/*", "bytes +1-2/3"})
    CHECK_MESSAGE(!parse_content_range(wrong), wrong);
}

TEST_CASE("an answer is accepted if it has the requested bytes of the expected version") {
  const mr::file_identity expected{1000, "\"a\""};
  const auto part = judged({100, 200}, &expected, 206, {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"a\""}});
  CHECK(part.what == http_answer_kind::bytes);
  CHECK(part.first_byte == 100);
  CHECK(part.end_byte == 200);
  const auto less = judged({100, 200}, &expected, 206, {{"content-range", "bytes 100-149/1000"}, {"etag", "W/\"a\""}});
  CHECK(less.what == http_answer_kind::bytes);
  CHECK(less.end_byte == 150);
  const auto complete = judged({100, 200}, &expected, 200, {{"Content-Range", "bytes 100-199/1000"}});
  CHECK(complete.what == http_answer_kind::bytes);
  CHECK(complete.first_byte == 100);
  const auto all = judged({100, 200}, &expected, 200, {{"Content-Length", "1000"}, {"ETag", "\"a\""}});
  CHECK(all.what == http_answer_kind::bytes);
  CHECK(all.first_byte == 0);
  CHECK(all.end_byte == 1000);
}

TEST_CASE("the first answer contains size and version") {
  const auto first = judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-63/1000"}, {"ETag", "\"a\""}});
  CHECK(first.identity == mr::file_identity{1000, "\"a\""});
  const auto short_one = judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-9/10"}, {"Last-Modified", "Mon"}});
  CHECK(short_one.identity == mr::file_identity{10, "changed Mon"});
  CHECK(short_one.end_byte == 10);
  CHECK(judged({0, 64}, nullptr, 200, {{"Content-Length", "10"}}).identity == mr::file_identity{10, ""});
  for (const auto& empty : {judged({0, 64}, nullptr, 416, {{"Content-Range", "bytes */0"}}),
                            judged({0, 64}, nullptr, 416, {}),
                            judged({0, 64}, nullptr, 200, {{"Content-Length", "0"}})}) {
    CHECK(empty.what == http_answer_kind::nothing);
    CHECK(empty.identity->size_bytes == 0);
  }
  CHECK(judged({0, 64}, nullptr, 206, {{"Content-Range", "bytes 0-63/*"}}).what == http_answer_kind::wrong);
  CHECK(judged({0, 64}, nullptr, 200, {}).what == http_answer_kind::wrong);
}

TEST_CASE("other bytes, other versions and compressed bytes are never accepted") {
  const mr::file_identity expected{1000, "\"a\""}, by_time{1000, "changed Mon"};
  const auto kind = [&](int status, const mr::detail::header_list& headers, const mr::file_identity* identity) {
    return judged({100, 200}, identity, status, headers).what;
  };
  using enum http_answer_kind;
  CHECK(kind(206, {{"Content-Range", "bytes 101-200/1000"}}, &expected) == wrong);
  CHECK(kind(206, {{"Content-Range", "bytes 100-200/1000"}}, &expected) == wrong);
  CHECK(kind(206, {}, &expected) == wrong);
  CHECK(kind(200, {{"Content-Range", "nonsense"}}, &expected) == wrong);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Content-Encoding", "gzip"}}, &expected) == wrong);
  CHECK(kind(416, {}, &expected) == wrong);
  CHECK(kind(416, {{"Content-Range", "bytes */1000"}}, &expected) == wrong);
  CHECK(kind(416, {{"Content-Range", "bytes */90"}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1001"}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"b\""}}, &expected) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Last-Modified", "Tue"}}, &by_time) == replaced);
  CHECK(kind(206, {{"Content-Range", "bytes 100-199/1000"}, {"Last-Modified", "Mon"}}, &by_time) == bytes);
  CHECK(kind(200, {{"Content-Length", "999"}}, &expected) == replaced);
  CHECK(kind(412, {}, &expected) == replaced);
  CHECK(kind(404, {}, &expected) == replaced);
  CHECK(kind(404, {}, nullptr) == other);
  CHECK(kind(503, {}, &expected) == other);
  CHECK(kind(302, {}, &expected) == other);
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A reader that reads 1 MiB at a time, and waits before each read.
struct waiting_reader {
  fetch_window window{8 * mib};
  mr::detail::network_time now{1'000'000'000, 900'000'000};   // before the first byte arrives

  /// `rate` is in bytes per ns; `idle` is the share of the time in which the network's thread has nothing to do.
  void read_a_mib(double rate, double idle) {
    window.adapt(128 * mib);
    window.record_consumed(mib, now);
    pass(static_cast<double>(mib) / rate, idle);
  }
  void pass(double ns, double idle) {
    now.now_ns += static_cast<std::int64_t>(ns);
    now.idle_ns += static_cast<std::int64_t>(idle * ns);
  }
};

/// `rate` is a function of the window.
std::size_t window_after(std::size_t bytes, const std::function<double(std::size_t)>& rate,
                         std::size_t file_bytes = ~std::size_t{0}) {
  waiting_reader reader;
  for (std::size_t at = 0; at < bytes; at += mib) {
    reader.read_a_mib(rate(reader.window.bytes()), 0.5);
    if ((at + mib) % file_bytes != 0) continue;
    reader.pass(1e9, 1);   // a connection to the next file
    reader.window = reader.window.of_next_file();
  }
  return reader.window.bytes();
}

/// 85 MB/s for each 8 MiB in flight.
double far(std::size_t window) { return 0.085 * static_cast<double>(window) / (8 * mib); }

}  // namespace

TEST_CASE("a window grows as long as the reader gets faster") {
  CHECK(window_after(8 * mib, far) == 8 * mib);
  CHECK(window_after(10 * mib, far) == 16 * mib);
  CHECK(window_after(256 * mib, far) == 128 * mib);
}

TEST_CASE("a doubling that does not help is undone") {
  // A link of 340 MB/s for any window above 32 MiB. One more doubling is necessary to find out.
  const auto narrow = [](std::size_t window) { return std::min(far(window), 0.34); };
  CHECK(window_after(100 * mib, narrow) == 64 * mib);
  CHECK(window_after(256 * mib, narrow) == 32 * mib);
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(12 * mib, near) == 16 * mib);
  CHECK(window_after(64 * mib, near) == 8 * mib);
}

TEST_CASE("a doubling that was undone is tried again later") {
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(8 * mib * 66, near) == 8 * mib);
  CHECK(window_after(8 * mib * 68, near) == 16 * mib);
  CHECK(window_after(8 * mib * 71, near) == 8 * mib);
}

TEST_CASE("a window does not grow while the network's thread is busy") {
  waiting_reader reader;
  for (int i = 0; i < 1'000; ++i) {
    reader.read_a_mib(far(reader.window.bytes()), 0.12);
    CHECK(reader.window.bytes() == 8 * mib);
  }
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(far(reader.window.bytes()), 0.13);
  CHECK(reader.window.bytes() == 128 * mib);
}

TEST_CASE("a busy network's thread gets the smallest window with which the reader is as fast") {
  waiting_reader reader;
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(far(reader.window.bytes()), 0.5);
  CHECK(reader.window.bytes() == 128 * mib);
  waiting_reader slowing_reader = reader;
  for (int i = 0; i < 1'000; ++i) reader.read_a_mib(1.3, 0);
  CHECK(reader.window.bytes() == 8 * mib);
  // At 64 MiB the rate halves: this is detected after 64 MiB, undone, and not tried again for long.
  int smaller = 0;
  for (int i = 0; i < 2'000; ++i) {
    slowing_reader.read_a_mib(far(slowing_reader.window.bytes()), 0);
    smaller += slowing_reader.window.bytes() < 128 * mib;
  }
  CHECK(slowing_reader.window.bytes() == 128 * mib);
  CHECK(smaller > 0);
  CHECK(smaller < 100);
}

TEST_CASE("a pause of the machine does not mistakenly speed up the next window") {
  waiting_reader reader;
  for (int i = 0; i < 100; ++i) reader.read_a_mib(0.4, 0);
  reader.pass(100e6, 1);
  for (int i = 0; i < 9 && reader.window.bytes() == 8 * mib; ++i) reader.read_a_mib(0.4, 0.2);
  CHECK(reader.window.bytes() == 16 * mib);   // the doubling is on trial
  for (int i = 0; i < 17; ++i) reader.read_a_mib(0.4, 0.2);
  CHECK(reader.window.bytes() == 8 * mib);
}

TEST_CASE("the window of the next file starts with the last size of the previous one") {
  CHECK(window_after(400 * mib, far, 5 * mib) == 128 * mib);
  const auto near = [](std::size_t) { return 0.3; };
  CHECK(window_after(400 * mib, near, 5 * mib) == 8 * mib);
}

TEST_CASE("a window does not go beyond its limit, and one beyond it stays") {
  fetch_window window(48 * mib);
  mr::detail::network_time now{};
  const auto later = [&] { return now = {now.now_ns + 1'000'000, now.idle_ns + 500'000}; };
  for (int i = 0; i < 400; ++i) {
    window.adapt(64 * mib);
    CHECK(window.bytes() <= 64 * mib);
    window.record_consumed(mib, later());
  }
  fetch_window wide(128 * mib);
  for (int i = 0; i < 400; ++i) {
    wide.adapt(64 * mib);
    CHECK(wide.bytes() == 128 * mib);
    wide.record_consumed(mib, later());
  }
}

using memory_need = mr::detail::part_memory::need;

TEST_CASE("optional blocks keep within the bound, required ones do not wait") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  mr::detail::part_memory memory(4 * mib);
  std::vector<mr::detail::part_memory::block> blocks;
  for (int i = 0; i < 4; ++i) {
    auto block = memory.take(mib, memory_need::optional);
    REQUIRE(block);
    CHECK(block->bytes().size() == mib);
    blocks.push_back(std::move(*block));
  }
  CHECK_FALSE(memory.take(1, memory_need::optional));
  auto more = memory.take(mib, memory_need::required);
  REQUIRE(more);
  CHECK(memory.now().held_bytes == 5 * mib);
  more.reset();
  blocks.erase(blocks.begin());
  auto again = memory.take(mib - 5, memory_need::optional);
  REQUIRE(again);
  CHECK(again->bytes().size() == mib - 5);
  blocks.clear();
  again.reset();
  CHECK(memory.now().held_bytes == 0);
  CHECK(memory.now().max_bytes == 5 * mib);
}

TEST_CASE("blocks may outlive their memory pool") {
  auto memory = std::make_unique<mr::detail::part_memory>(1 << 20);
  auto block = memory->take(10, memory_need::required);
  memory.reset();
  block->bytes()[9] = std::byte{1};
}
