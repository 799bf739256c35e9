// Blocks of small samples: each sample once, in any order, from any thread, within the limit.
#include <millrace/io/index/read/block_cache.hpp>
#include <millrace/item/record_builder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

namespace mr = millrace;
using mr::detail::block_cache;

namespace {

constexpr std::uint32_t length = 8;

mr::record record_with(mr::block_pool& pool, const std::string& key) {
  mr::record_builder build(pool);
  build.begin("s.tar", key, 0);
  return build.finish();
}

std::string key_of(std::uint32_t block, std::uint32_t offset) {
  return std::to_string(block) + "/" + std::to_string(offset);
}

/// A cache and its reader.
struct world {
  mr::block_pool pool;
  block_cache cache;
  std::atomic<int> reads{0};

  explicit world(std::size_t limit_bytes) : cache({.limit_bytes = limit_bytes}) {}

  std::vector<mr::record> take(std::uint32_t block, const std::vector<std::uint32_t>& offsets) {
    std::vector<mr::record> result(offsets.size());
    std::vector<mr::record*> places;
    for (auto& r : result) places.push_back(&r);
    cache.take({.shard = 0, .number = block}, offsets, places, [&](std::vector<mr::record>& records) {
      ++reads;
      for (std::uint32_t i = 0; i < length; ++i) records.push_back(record_with(pool, key_of(block, i)));
    });
    return result;
  }
};

constexpr std::size_t plenty = std::size_t{1} << 30;

}  // namespace

TEST_CASE("a block is read once for all its samples, and dropped after the last one") {
  world w(plenty);
  CHECK(w.take(2, {5})[0].key() == "2/5");
  const std::size_t bytes_now = w.cache.held_bytes();
  CHECK(bytes_now > 0);
  const auto more = w.take(2, {0, 1, 7});
  CHECK(more[2].key() == "2/7");
  CHECK(w.reads == 1);
  CHECK(w.cache.held_bytes() == bytes_now);
  static_cast<void>(w.take(2, {2, 3, 4, 6}));
  CHECK(w.reads == 1);
  CHECK(w.cache.held_bytes() == 0);
  CHECK(w.take(2, {5})[0].key() == "2/5");   // the next epoch
  CHECK(w.reads == 2);
}

TEST_CASE("a sample that is requested again before its neighbors is read again, and so are they") {
  world w(plenty);
  static_cast<void>(w.take(0, {1, 2}));
  CHECK(w.take(0, {2, 3})[0].key() == "0/2");
  CHECK(w.reads == 2);
  CHECK(w.take(0, {0, 1, 4, 5, 6, 7})[1].key() == "0/1");
  CHECK(w.reads == 2);
  CHECK(w.cache.held_bytes() == 0);
}

TEST_CASE("beyond the limit the least recently requested block is dropped") {
  world w(0);
  static_cast<void>(w.take(0, {0}));
  const std::size_t one = w.cache.held_bytes();   // the one in use stays, whatever the limit
  CHECK(one > 0);
  world three(3 * one);
  for (const std::uint32_t block : {0U, 1U, 2U}) static_cast<void>(three.take(block, {0}));
  static_cast<void>(three.take(0, {1}));
  CHECK(three.reads == 3);
  static_cast<void>(three.take(3, {0}));   // 1 is dropped
  CHECK(three.cache.held_bytes() == 3 * one);
  static_cast<void>(three.take(0, {2}));
  static_cast<void>(three.take(2, {1}));
  CHECK(three.reads == 4);
  CHECK(three.take(1, {1})[0].key() == "1/1");
  CHECK(three.reads == 5);
  CHECK(three.cache.held_bytes() == 3 * one);
}

TEST_CASE("a sample that could not be read is returned empty, and exceptions of the reader are passed on") {
  mr::block_pool pool;
  block_cache cache({.limit_bytes = plenty});
  std::vector<mr::record> result(2);
  const std::vector<mr::record*> places{&result[0], &result[1]};
  const std::vector<std::uint32_t> offsets{0, 1};
  cache.take({}, offsets, places, [&](std::vector<mr::record>& records) {
    records.resize(2);
    records[1] = record_with(pool, "good");
  });
  CHECK(result[0].empty());
  CHECK(result[1].key() == "good");
  CHECK(cache.held_bytes() == 0);
  CHECK_THROWS_AS(cache.take({}, offsets, places, [](std::vector<mr::record>&) { throw std::bad_alloc(); }),
                  std::bad_alloc);
}

TEST_CASE("several threads get every sample of every block once, by one read") {
  world w(plenty);
  constexpr std::uint32_t blocks = 200;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (std::uint32_t mine = 0; mine < 4; ++mine)
    threads.emplace_back([&, mine] {
      for (std::uint32_t s = 0; s < blocks; ++s) {
        const auto both = w.take(s, {mine, mine + 4});
        right += both[0].key() == key_of(s, mine) && both[1].key() == key_of(s, mine + 4);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 4 * blocks);
  CHECK(w.reads == blocks);
  CHECK(w.cache.held_bytes() == 0);
}

TEST_CASE("a thread that needs a reserved block waits for its owner, and reads it itself if the owner cancels") {
  world w(plenty);
  auto reservation = w.cache.reserve({.shard = 0, .number = 3});
  REQUIRE(reservation);
  CHECK_FALSE(w.cache.reserve({.shard = 0, .number = 3}));
  CHECK(w.cache.reserve({.shard = 0, .number = 4}));   // given up at once
  std::atomic<bool> is_right{false};
  std::thread other([&] {
    const bool right = w.take(3, {2})[0].key() == "3/2";
    is_right = right;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(is_right.load());
  w.cache.fill(std::move(*reservation), [&](std::vector<mr::record>& records) {
    ++w.reads;
    for (std::uint32_t i = 0; i < length; ++i) records.push_back(record_with(w.pool, key_of(3, i)));
  });
  other.join();
  CHECK(is_right.load());
  CHECK(w.reads == 1);
  CHECK_FALSE(w.cache.reserve({.shard = 0, .number = 3}));   // it has more samples
  CHECK(w.take(4, {1})[0].key() == "4/1");
  CHECK(w.reads == 2);
}
