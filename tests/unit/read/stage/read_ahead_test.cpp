// Readers that sleep because enough is prefetched: every consumer must wake them, whatever the timing.
#include "../../../eventually.hpp"
#include "../run/replay_flows.hpp"
#include "../../tune/restless_concurrency.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::size_t item_bytes = std::size_t{300} << 10;   // more than a chunk: each is read alone

/// Large for the budget, but small in memory.
struct heavy {
  std::int64_t number = 0;
  std::size_t held_bytes() const noexcept { return item_bytes; }
};

/// The duration of very short work; different for each, so that threads meet in every way.
void dawdle(std::int64_t number) {
  for (std::int64_t i = 0; i < number * 7919 % 128; ++i) asm volatile("" : : : "memory");
}

struct heavy_shards {
  using item = heavy;
  std::int64_t each = 0;

  struct reader {
    std::int64_t at, end;
    std::optional<heavy> next() {
      dawdle(at);
      return at < end ? std::optional(heavy{at++}) : std::nullopt;
    }
  };
  std::size_t shards() const { return 4; }
  reader open(std::size_t shard, std::uint64_t) const {
    const auto first = static_cast<std::int64_t>(shard) * each;
    return {first, first + each};
  }
};

struct row {
  std::int64_t number = 0;
};
row light_row(int number) { return {number}; }
row as_row(const heavy& item) {
  dawdle(item.number / 3);
  return {item.number};
}

template <class Flow>
std::uint64_t rows_of(Flow flow, const mr::session_options& options) {
  mr::session run{std::move(flow), options};
  std::uint64_t rows = 0;
  for (auto& b : run) rows += b.size();
  return rows;
}
/// The numbers in the order of arrival.
template <class Flow>
std::vector<std::int64_t> numbers_of(Flow flow, const mr::session_options& options) {
  mr::session run{std::move(flow), options};
  std::vector<std::int64_t> all;
  for (auto& b : run)
    for (const std::int64_t n : b.template get<&row::number>().host()) all.push_back(n);
  return all;
}

}  // namespace

TEST_CASE("a run whose readers wait for space continues to its end") {
  const stall_watchdog watchdog;
  struct {
    std::size_t shards;
    unsigned io_threads;
    int threads;
    std::size_t batch;
    std::size_t each;
  } const cases[] = {{1, 4, 1, 256, 3'000'000}, {1, 1, 1, 256, 600'000}, {3, 4, 2, 7, 60'000}, {3, 1, 2, 64, 60'000}};
  for (const auto& one : cases) {
    CAPTURE(one.io_threads);
    CAPTURE(one.batch);
    mr::session_options options = quiet(one.threads, 2);
    options.io_threads = one.io_threads;
    const std::size_t each = one.each / stride(4), rows = each * one.shards;
    const numbers_in_shards light{std::vector(one.shards, static_cast<int>(each))};
    CHECK(rows_of(mr::from(light) | mr::map(light_row) | mr::batch<&row::number>({.size = one.batch}), options) ==
          2 * (rows - rows % one.batch));
  }
}

TEST_CASE("the workers' full input has no additional queue of as many samples") {
  const stall_watchdog watchdog;
  mr::session_options options = quiet(1);
  options.io_threads = 1;
  mr::session run{mr::from(numbers_in_shards{{100'000}}) | mr::map(light_row) | mr::batch<&row::number>({.size = 64}),
                  options};
  REQUIRE(run.next());   // the trainer requests no other batch
  REQUIRE(eventually([&] { return run.stats().samples_read >= 4'096; }));   // the input is full
  std::uint64_t read = 0;
  do {
    read = run.stats().samples_read;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (read != run.stats().samples_read);
  CHECK(read < 4'096 + 1'500);   // slots, and one or two chunks without room
}

TEST_CASE("a run whose readers wait for bytes continues to its end") {
  const stall_watchdog watchdog;
  const auto each = static_cast<std::int64_t>(300 / stride(3));
  for (const std::size_t items_ahead : {1U, 3U, 8U})
    for (const unsigned io_threads : {1U, 1U, 4U})
      for (const int threads : {1, 2}) {
        mr::session_options options = quiet(threads, 3);
        options.io_threads = io_threads;
        options.read_ahead_bytes = items_ahead * item_bytes;
        CAPTURE(items_ahead);
        CAPTURE(io_threads);
        CAPTURE(threads);
        CHECK(rows_of(mr::from(heavy_shards{each}) | mr::map(as_row) | mr::batch<&row::number>({.size = 2}), options) ==
              3 * 4 * each);
        // Lanes have their own read stage.
        mr::session_options in_lanes = options;
        in_lanes.epoch_batches = each / 5;
        in_lanes.lanes = 4;
        CHECK(rows_of(mr::from(heavy_shards{each}) | mr::shuffle({.window = 8}) | mr::map(as_row) |
                          mr::batch<&row::number>({.size = 5}),
                      in_lanes) == 3 * each);
      }
}

TEST_CASE("readers and workers that are closed leave their samples to others, whatever the timing") {
  const stall_watchdog watchdog;
  constexpr std::int64_t each = 150;
  const auto plain = [] {
    return mr::from(heavy_shards{each}) | mr::map(as_row) | mr::batch<&row::number>({.size = 2});
  };
  const auto in_lanes = [] {
    return mr::from(heavy_shards{each}) | mr::shuffle({.window = 8}) | mr::map(as_row) |
           mr::batch<&row::number>({.size = 5});
  };
  mr::session_options options = quiet(1, 2), lanes = options;
  lanes.epoch_batches = each / 5;
  lanes.lanes = 4;
  const auto expected = numbers_of(plain(), options), expected_in_lanes = numbers_of(in_lanes(), lanes);
  CHECK(expected.size() == 2 * 4 * each);
  for (const std::size_t items_ahead : {1U, 6U, 40U})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      CAPTURE(items_ahead);
      CAPTURE(seed);
      for (mr::session_options* o : {&options, &lanes}) {
        o->io_threads = static_cast<unsigned>(seed);
        o->read_ahead_bytes = items_ahead * item_bytes;
        o->tuning = std::make_shared<restless_concurrency>(seed);
      }
      CHECK(numbers_of(plain(), options) == expected);
      CHECK(numbers_of(in_lanes(), lanes) == expected_in_lanes);
    }
}

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Reserves part of a limit that it does not use.
struct claimed {
  std::int64_t number = 0;
  std::size_t held_bytes() const noexcept { return 4 * mib; }
};

/// A storage that delivers all at once, except for a pause after each 40 samples.
struct pausing_shard {
  using item = claimed;
  std::chrono::milliseconds pause{0};

  struct reader {
    std::chrono::milliseconds pause;
    std::int64_t at = 0;
    std::optional<claimed> next() {
      if (at == 240) return std::nullopt;
      if (++at % 40 == 0) std::this_thread::sleep_for(pause);
      return claimed{at};
    }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {pause}; }
};

/// The limit at the end of a run with these pauses and steps.
std::size_t limit_after(std::chrono::milliseconds pause, std::chrono::milliseconds step,
                        const mr::session_options& options) {
  const auto as_number = [](const claimed& c) { return row{c.number}; };
  mr::session run{mr::from(pausing_shard{pause}) | mr::map(as_number) | mr::batch<&row::number>({.size = 1}) |
                      mr::prefetch({.batches = 1}),
                  options};
  std::size_t limit = 0;
  for (auto& b : run) {
    std::this_thread::sleep_for(step * b.size());
    limit = run.statistics().read_ahead_bytes;
  }
  return limit;
}

}  // namespace

TEST_CASE("reading ahead begins with 64 MiB, and grows to its limit if the storage pauses for longer") {
  mr::session_options options = quiet(1, 1);
  options.io_threads = 1;
  options.memory_bytes = 4096 * mib;
  // A storage that never pauses, and steps so long that the prefetched samples always last longer than a wait for a
  // core.
  CHECK(at_some_scale([&](int scale) {
    return limit_after(std::chrono::milliseconds(0), std::chrono::milliseconds(10 * scale), options) == 64 * mib;
  }));
  const auto with_pauses = [&](std::size_t expected) {
    return at_some_scale([&](int scale) {
      return limit_after(std::chrono::milliseconds(150 * scale), std::chrono::milliseconds(1), options) == expected;
    });
  };
  CHECK(with_pauses(256 * mib));
  options.read_ahead_bytes = 100 * mib;
  CHECK(with_pauses(100 * mib));
  options.read_ahead_bytes = 20 * mib;
  CHECK(with_pauses(20 * mib));
}

namespace {

/// Whether two reads are in progress at a time.
struct overlap {
  std::atomic<int> reading{0};
  std::atomic<bool> together{false};
};

/// Two shards that each deliver a few items at once. Then each read waits for one of the other shard, until two were in
/// progress at a time.
struct slow_shards {
  using item = heavy;
  static constexpr std::int64_t each = 80, quick = 40;
  std::shared_ptr<overlap> reads = std::make_shared<overlap>();

  struct reader {
    std::shared_ptr<overlap> reads;
    std::int64_t at = 0;
    std::optional<heavy> next() {
      if (at == each) return std::nullopt;
      if (at >= quick) {
        if (++reads->reading > 1) reads->together = true;
        CHECK(eventually([&] { return reads->together.load(); }));
        --reads->reading;
      }
      return heavy{at++};
    }
  };
  std::size_t shards() const { return 2; }
  reader open(std::size_t, std::uint64_t) const { return {reads}; }
};

}  // namespace

TEST_CASE("all readers read again once there is room, not only the one that was woken") {
  const stall_watchdog watchdog;
  const slow_shards shards;
  mr::session_options options = quiet(1);
  options.io_threads = 2;
  options.read_ahead_bytes = 64 * item_bytes;   // reached by the items that are delivered at once
  mr::session run{mr::from(shards) | mr::map(as_row) | mr::batch<&row::number>({.size = 1}) |
                      mr::prefetch({.batches = 1}),
                  options};
  REQUIRE(run.next());
  for (std::uint64_t read = 0; read != run.stats().samples_read;) {   // until both readers sleep
    read = run.stats().samples_read;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK_FALSE(shards.reads->together.load());
  std::int64_t rows = 1;
  for (auto& b : run) rows += static_cast<std::int64_t>(b.size());
  CHECK(rows == 2 * slow_shards::each);
  CHECK(shards.reads->together.load());
}

TEST_CASE("the current shard precedes later ones: they do not starve the workers, and no limit grows") {
  const stall_watchdog watchdog;
  struct quick_shards {
    using item = claimed;
    struct reader {
      std::int64_t at = 0;
      std::optional<claimed> next() { return at < 20 ? std::optional(claimed{at++}) : std::nullopt; }
    };
    std::size_t shards() const { return 8; }
    reader open(std::size_t, std::uint64_t) const { return {}; }
  };
  mr::session_options options = quiet(1, 1);
  options.io_threads = 4;
  options.memory_bytes = 4096 * mib;
  CHECK(at_some_scale([&](int scale) {
    mr::session run{mr::from(quick_shards{}) | mr::map([](const claimed& c) { return row{c.number}; }) |
                        mr::batch<&row::number>({.size = 1}) | mr::prefetch({.batches = 1}),
                    options};
    std::size_t rows = 0;
    for (auto& b : run) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * scale));   // as above
      rows += b.size();
    }
    CHECK(rows == 8 * 20);
    return run.statistics().read_ahead_bytes == 64 * mib;
  }));
}
