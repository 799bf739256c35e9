// Samples of an indexed shard: which are read together, checksums, errors; and blocks of small samples, read once.
#include "../../tar_bytes.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/block_cache.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/item/record_builder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

TEST_CASE("samples are read in any order, some twice, in few reads, and are those of shard_reader") {
  const std::string tar = mixed_shard(200);
  bool in_parts = false;
  SUBCASE("with the gaps between them") {}
  SUBCASE("without") { in_parts = true; }
  memory_source source(tar, {.in_parts = in_parts});
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  REQUIRE(index.samples() == 200);
  const outcome all = read_tar(tar), selected = read_tar(tar, {.fields = {"bin", "json;none"}});
  mr::rng random({.seed = 3});
  for (const bool some : {false, true}) {
    for (const std::size_t bytes_per_read : {std::size_t{1}, std::size_t{10'000}, std::size_t{1} << 20}) {
      mr::detail::indexed_reader reader(source, index, shared_pool(),
                                {.fields = some ? std::vector<std::string>{"bin", "json;none"}
                                                : std::vector<std::string>{},
                                 .bytes_per_read = bytes_per_read});
      std::vector<std::uint32_t> numbers(300);
      for (auto& n : numbers) n = static_cast<std::uint32_t>(random.below(200));
      std::vector<mr::record> records(numbers.size());
      REQUIRE(reader.read(numbers, records) == numbers.size());
      std::size_t held_bytes = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        CHECK(fields_text(records[i]) == (some ? selected : all).samples[numbers[i]]);
        CHECK(records[i].offset_bytes() == all.offsets[numbers[i]]);
        CHECK(records[i].shard() == "memory.tar");
        held_bytes += records[i].held_bytes();
        for (const auto& field : records[i].fields()) {
          CHECK(mr::detail::location_of(field).key == records[i].key());
          CHECK(mr::detail::location_of(field).offset_bytes == records[i].offset_bytes());
        }
      }
      CHECK(held_bytes > 100 * 100 * 6);
      CHECK(held_bytes < 5 * tar.size());
      if (bytes_per_read > 1) CHECK(reinterpret_cast<std::uintptr_t>(records[0].field(0).data()) % 64 == 0);
    }
  }
}

TEST_CASE("neighbors are read at once, and distant samples are not") {
  std::string tar;
  for (int i = 0; i < 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    tar += file(key + ".cls", "1") + file(key + ".mp4", std::string(50'000, 'm'));
    tar += file(key + ".txt", std::string(100, 't'));
  }
  bool in_parts = false;
  SUBCASE("with the gaps between them") {}
  SUBCASE("without") { in_parts = true; }
  memory_source source(tar + end_marker(), {.in_parts = in_parts});
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  std::vector<std::uint32_t> numbers(100);
  std::vector<mr::record> records(100);
  for (std::uint32_t i = 0; i < 100; ++i) numbers[i] = 99 - i;
  mr::detail::indexed_reader all(source, index, shared_pool());
  REQUIRE(all.read(numbers, records) == 100);
  CHECK(all.counters().reads == (in_parts ? 5 : 6));   // of a mebibyte of memory
  CHECK(all.counters().read_bytes < tar.size());
  mr::detail::indexed_reader small(source, index, shared_pool(), {.fields = {"cls", "txt"}});
  REQUIRE(small.read(numbers, records) == 100);
  CHECK(small.counters().reads == 101);   // the end of one sample and the begin of the next
  CHECK(small.counters().read_bytes < 250'000);
  CHECK(records[0]["txt"].text() == std::string(100, 't'));
}

TEST_CASE("if the source reads parts, gaps of any length stay out of memory") {
  const temporary_folder folder;
  std::string tar;
  mr::rng random({.seed = 8});
  std::size_t payload_bytes = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "k" + std::to_string(i), bin(i % 5 == 0 ? 0 : random.below(2'000), 'b');
    tar += file(key + ".bin", bin) + file(key + ".cls", std::to_string(i));
    tar += file(key + ".raw", std::string(random.below(9'000), 'r'));
    payload_bytes += bin.size() + std::to_string(i).size();
  }
  save(folder / "x.tar", tar + end_marker());
  const outcome all = read_tar(tar + end_marker(), {.fields = {"bin", "cls"}});
  mr::file_source source(folder / "x.tar");
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  std::vector<std::uint32_t> numbers(300);
  for (std::uint32_t i = 0; i < 300; ++i) numbers[i] = i;
  std::vector<mr::record> records(300);
  mr::block_pool pool;   // a separate one: it creates a block of the right size
  mr::detail::indexed_reader reader(source, index, pool, {.fields = {"bin", "cls"}});
  REQUIRE(reader.read(numbers, records) == 300);
  CHECK(reader.counters().reads == 1);
  CHECK(reader.counters().read_bytes > 1'000'000);
  std::size_t held_bytes = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(fields_text(records[i]) == all.samples[i]);
    held_bytes += records[i].held_bytes();
    for (const auto& field : records[i].fields()) CHECK(reinterpret_cast<std::uintptr_t>(field.data()) % 64 == 0);
  }
  CHECK(held_bytes < payload_bytes + 300 * 400);   // the rest of a sample without its payloads
}

TEST_CASE("parts for the system to fill are few: gaps stay, are overwritten, or have their own parts") {
  struct watched_source : memory_source {
    using memory_source::memory_source;
    std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override {
      places.assign(parts.begin(), parts.end());
      return memory_source::read_parts(offset_bytes, parts);
    }
    std::vector<std::span<std::byte>> places{};
  };
  std::size_t size = 0, places = 0;
  SUBCASE("a small one stays, one after the sample is overwritten") {
    size = 2'048;
    places = 3;
  }
  SUBCASE("one in a sample is overwritten, and the last does not fit after its payload") {
    size = 1'500;
    places = 3 * 2 + 1;
  }
  std::string tar;
  for (const char* key : {"a", "b", "c"})
    tar += file(key + std::string(".bin"), std::string(size, *key)) + file(key + std::string(".cls"), key);
  watched_source source(tar + end_marker(), {.in_parts = true});
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  std::vector<mr::record> records(3);
  mr::detail::indexed_reader reader(source, index, shared_pool());
  REQUIRE(reader.read(std::vector<std::uint32_t>{0, 1, 2}, records) == 3);
  for (const auto& r : records) {
    CHECK(r["bin"].text() == std::string(size, r.key()[0]));
    CHECK(r["cls"].text() == r.key());
  }
  CHECK(source.places.size() == places);
  const std::byte* const end = records[2]["cls"].data() + 1;
  for (const auto& place : source.places)
    if (place.data() >= records[0]["bin"].data() && place.data() < end) CHECK(place.data() + place.size() <= end);
}

TEST_CASE("checksums are learned when a payload is first read, and checked from then on") {
  const small_shard shard;
  std::string tar = shard.bytes();
  memory_source source(tar);
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  std::vector<std::uint32_t> numbers{2, 1, 0};
  std::vector<mr::record> records(3);
  mr::detail::indexed_reader labels(source, index, shared_pool(), {.fields = {"cls"}});
  CHECK(labels.read(numbers, records) == 3);
  CHECK(index.known_checksums() == 3);
  mr::detail::indexed_reader reader(source, index, shared_pool());
  CHECK(reader.read(numbers, records) == 3);
  CHECK(reader.counters().checksums_learned == 3);
  CHECK(reader.counters().checksums_checked == 3);
  CHECK(index.checksum(1) == mr::crc32c(std::as_bytes(std::span(tar).subspan(shard.offset_of(1) + 512, 700))));
  for (std::size_t bit = 0; bit < 700 * 8; bit += 37) {
    std::string flipped = tar;
    char& byte = flipped[shard.offset_of(3) + 512 + bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    memory_source changed(flipped);
    mr::detail::indexed_reader again(changed, index, shared_pool());
    REQUIRE(again.read(numbers, records) == 1);   // sample 2 is right, and 0 is not requested before 1
    CHECK(records[0].key() == "c");
    try {
      std::rethrow_exception(again.failure());
    } catch (const mr::data_error& e) {
      CHECK(e.message().starts_with("the sample was changed: got the CRC-32C 0x"));
      CHECK(e.message().find(" of its field 'jpg', expected 0x") != std::string::npos);
      CHECK(e.where().key == "b");
      CHECK(e.where().shard == "memory.tar");
      CHECK(e.where().offset_bytes == shard.offset_of(3) + 512);
    }
    mr::detail::indexed_reader careless(changed, index, shared_pool(), {.checksums = false});
    CHECK(careless.read(numbers, records) == 3);
  }
}

TEST_CASE("the first failure in the order of the list is the one that is reported") {
  const std::string tar = mixed_shard(50);
  memory_source source(tar);
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  mr::detail::indexed_reader reader(source, index, shared_pool(), {.limits = {.max_member_bytes = 60'000}});
  std::vector<mr::record> records(5);
  const std::vector<std::uint32_t> numbers{40, 7, 10, 3, 0};   // 10 and 3 are too large
  REQUIRE(reader.read(numbers, records) == 2);
  CHECK(records[1].key() == "k7");
  try {
    std::rethrow_exception(reader.failure());
  } catch (const mr::data_error& e) {
    CHECK(e.message().find("'k10.bin' is too large: got 70000 bytes, expected at most 60000, after the last good key "
                           "'k9'") != std::string::npos);
  }
  CHECK_THROWS_AS((void)reader.read_one(3), mr::data_error);
  CHECK(reader.read_one(4).key() == "k4");
}

TEST_CASE("a shard that became shorter, and a failing disk, are errors of the affected sample") {
  const small_shard shard;
  memory_source source(shard.bytes());
  mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
  memory_source shorter(shard.bytes().substr(0, shard.offset_of(5) + 600));
  mr::detail::indexed_reader reader(shorter, index, shared_pool(), {.bytes_per_read = 1});
  const std::vector<std::uint32_t> numbers{0, 1, 2};
  std::vector<mr::record> records(3);
  CHECK(reader.read(numbers, records) == 2);
  CHECK_THROWS_AS(std::rethrow_exception(reader.failure()), mr::data_error);
  memory_source::faults f;
  f.fail_at = shard.offset_of(3);
  memory_source broken(shard.bytes(), f);
  mr::detail::indexed_reader unlucky(broken, index, shared_pool(), {.bytes_per_read = 1});
  CHECK(unlucky.read(numbers, records) == 1);
  CHECK_THROWS_AS(std::rethrow_exception(unlucky.failure()), mr::io_error);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{700}, ~std::size_t{0}}) {
    memory_source parts(shard.bytes().substr(0, shard.offset_of(5) + 600),
                        {.max_bytes_per_read = piece, .in_parts = true});
    mr::detail::indexed_reader in_parts(parts, index, shared_pool());
    CHECK(in_parts.read(numbers, records) == 0);   // all in one read
    try {
      std::rethrow_exception(in_parts.failure());
    } catch (const mr::data_error& e) {
      CHECK(e.where().offset_bytes == shard.offset_of(5) + 600);
    }
    CHECK(in_parts.read(std::span(numbers).first(2), std::span(records).first(2)) == 2);
    CHECK(records[1].key() == "b");
  }
  CHECK_THROWS_AS((void)mr::detail::scan_shard(broken, shared_pool()), mr::io_error);
}

TEST_CASE("a sample that is read alone ends where its shard was damaged, whatever is stored there now") {
  // A sparse member is read by shard_reader, from the middle of the shard. It has not seen the headers before, by which
  // libarchive finds some headers damaged and others not. (Found by the tar fuzzer.)
  const std::string sparse = sparse_block({.name = "b.bin", .size_bytes = 4, .type = 'S'},
                                          {.at = 512, .stored = 4, .size = 600});
  const std::string before = file("a.txt", "1") + sparse + padded("data");
  const std::string cut = (before + file("c.txt", std::string(2'000, '2'))).substr(0, before.size() + 1'000);
  memory_source then(cut), now(before + file("b.txt", "2") + end_marker());
  mr::detail::shard_index index = mr::detail::scan_shard(then, shared_pool());
  REQUIRE(index.state() == mr::detail::shard_index::shard_state::damaged);
  REQUIRE(index.samples() == 2);
  mr::detail::indexed_reader reader(now, index, shared_pool());
  const mr::record b = reader.read_one(1);
  CHECK(b.key() == "b");
  CHECK(b.field_count() == 1);
  CHECK(b["bin"].size() == 600);
}

namespace {

constexpr std::uint32_t length = 8;
constexpr std::size_t plenty = std::size_t{1} << 30;

mr::record record_with(mr::block_pool& pool, const std::string& key) {
  mr::record_builder build(pool);
  build.begin("s.tar", key, 0);
  return build.finish();
}

std::string key_of(std::uint32_t block, std::uint32_t offset) {
  return std::to_string(block) + "/" + std::to_string(offset);
}

struct world {
  mr::block_pool pool;
  mr::detail::block_cache cache;
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
  mr::detail::block_cache cache({.limit_bytes = plenty});
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
