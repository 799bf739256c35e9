// A range that is being fetched: a waiting reader gets the right bytes, by each of the paths.
#include <millrace/adapt/remote/transfer/range_fetch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mr = millrace;
using mr::detail::range_fetch;

namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

struct fetched {
  std::vector<std::byte> expected = some_bytes(3 << 20), memory = std::vector<std::byte>(expected.size());
  std::shared_ptr<mr::detail::remote_object> object = std::make_shared<mr::detail::remote_object>();
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
    range_fetch range(std::make_shared<mr::detail::remote_object>(), 0, memory);
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
    range_fetch range(std::make_shared<mr::detail::remote_object>(), 0, memory);
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
