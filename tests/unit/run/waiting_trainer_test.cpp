// Members of a session for trainers in another language: waits with a limit, epochs, slots, and the parts of a batch.
#include "../../temporary_folder.hpp"
#include "indexed_runs.hpp"
#include "quiet_sessions.hpp"

#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace mr = millrace;
using namespace std::chrono_literals;

namespace {

struct row {
  std::int32_t number;
};

/// Two shards of eight rows.
struct counted_rows {
  using item = row;
  struct reader {
    std::int32_t at, end;
    std::optional<row> next() { return at < end ? std::optional(row{at++}) : std::nullopt; }
  };
  std::size_t shards() const { return 2; }
  reader open(std::size_t shard, std::uint64_t) const {
    return {static_cast<std::int32_t>(8 * shard), static_cast<std::int32_t>(8 * shard + 8)};
  }
};

using batch_text = std::pair<std::vector<std::int32_t>, std::string>;

/// The numbers and the resume text of all batches of a session.
template <class Session>
std::vector<batch_text> batches_of(Session& run) {
  std::vector<batch_text> all;
  for (auto& b : run) {
    const auto numbers = b.template get<0>().host();
    all.push_back({{numbers.begin(), numbers.end()}, b.resume_text()});
  }
  return all;
}

std::vector<std::vector<std::int32_t>> numbers_of(const std::vector<batch_text>& all, std::size_t first = 0) {
  std::vector<std::vector<std::int32_t>> numbers;
  for (std::size_t i = first; i < all.size(); ++i) numbers.push_back(all[i].first);
  return numbers;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("wait_for() ends without a batch while a callable blocks, and the time counts as wait, not as step") {
  std::atomic<bool> open{false};
  mr::session run{mr::from(first_numbers(8)) | mr::map([&](int n) {
                    while (n >= 4 && !open) std::this_thread::sleep_for(1ms);
                    return row{n};
                  }) | mr::batch<&row::number>({.size = 4}),
                  {.threads = 1, .notice = mr::quiet}};
  while (!run.wait_for(1h)) {
  }
  CHECK(run.next().get<0>()[0] == 0);
  CHECK_FALSE(run.wait_for(0ns));
  const auto step_ns = run.stats().step_ns;
  CHECK_FALSE(run.wait_for(5ms));
  CHECK(run.stats().step_ns == step_ns);   // the step ended with the first wait
  open = true;
  while (!run.wait_for(1h)) {
  }
  CHECK(run.next().get<0>()[0] == 4);
  CHECK(run.stats().step_ns == step_ns);
  CHECK(run.stats().wait_ns >= 5'000'000);
  while (!run.wait_for(1h)) {
  }
  CHECK_FALSE(run.next());
  CHECK(run.wait_for(1h));   // the run is over
}

TEST_CASE("wait_for() of an epoch returns true at its end, and without workers at once") {
  mr::session run{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                      mr::batch<&row::number>({.size = 4}),
                  {.epochs = 2, .threads = 1, .notice = mr::quiet}};
  std::size_t batches = 0;
  for (auto& b : run.epoch(0)) {
    batches += b.size() / 4;
    while (!run.wait_for(1h, 0)) {
    }
  }
  CHECK(batches == 2);
  mr::session alone{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4}),
                    {.threads = 0, .notice = mr::quiet}};
  CHECK(alone.wait_for(1h));
}

TEST_CASE("wait_for() returns true while the caller has leased all slots, because next() then throws") {
  mr::session run{mr::from(first_numbers(64)) | mr::map([](int n) { return row{n}; }) |
                      mr::batch<&row::number>({.size = 4}) | mr::prefetch({.batches = 1}),
                  {.threads = 1, .notice = mr::quiet}};
  const auto first = run.next(), second = run.next();
  CHECK(run.wait_for(1h));
  CHECK_THROWS_AS(run.next(), mr::setup_error);
}

TEST_CASE("extra_slots adds slots that the caller may keep") {
  for (const std::size_t extra : {0U, 3U}) {
    mr::session run{mr::from(first_numbers(64)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4}) | mr::prefetch({.batches = 2}),
                    {.threads = 1, .extra_slots = extra, .notice = mr::quiet}};
    CHECK(run.slots() == 3 + extra);
  }
}

TEST_CASE("epoch_batches() is known with an index and with a fixed number, and unknown for a pass over a stream") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder);
  const auto flow = [&](bool drop_last) {
    return mr::shards(shards, {.seed = 7}) | mr::map(indexed_runs::prepare) |
           mr::batch<&indexed_runs::example::label>({.size = 24, .drop_last = drop_last});
  };
  CHECK(mr::session(flow(true), {.threads = 0, .notice = mr::quiet}).epoch_batches() == 8U);
  CHECK(mr::session(flow(false), {.threads = 0, .notice = mr::quiet}).epoch_batches() == 9U);
  CHECK(mr::session(flow(true), {.epoch_batches = mr::endless, .threads = 0, .notice = mr::quiet}).epoch_batches() ==
        mr::endless);
  const auto stream = [] { return mr::from(counted_rows{}) | mr::batch<&row::number>({.size = 4}); };
  CHECK_FALSE(mr::session(stream(), {.threads = 0, .notice = mr::quiet}).epoch_batches());
  CHECK(mr::session(stream(), {.epoch_batches = 3, .threads = 0, .notice = mr::quiet}).epoch_batches() == 3U);
}

TEST_CASE("a run that starts in a later epoch delivers the same batches as a run from the beginning") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder);
  const auto indexed = [&] {
    return mr::shards(shards, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::map(indexed_runs::prepare) |
           mr::batch<&indexed_runs::example::label>({.size = 24});
  };
  const auto streamed = [] {
    return mr::from(counted_rows{}) | mr::shuffle({.window = 3}) | mr::batch<&row::number>({.size = 4});
  };
  const auto check = [](const auto& flow, std::size_t epoch_batches) {
    mr::session full{flow(), {.epochs = 3, .threads = 1, .notice = mr::quiet}};
    const auto all = batches_of(full);
    REQUIRE(all.size() == 3 * epoch_batches);
    for (const unsigned threads : {0U, 2U}) {
      mr::session late{flow(), {.epochs = 3, .threads = threads, .notice = mr::quiet, .first_epoch = 2}};
      const auto rest = batches_of(late);
      CHECK(numbers_of(rest) == numbers_of(all, 2 * epoch_batches));
      mr::session resumed{flow(),
                          {.epochs = 3, .threads = threads, .notice = mr::quiet, .resume = rest.front().second}};
      CHECK(numbers_of(batches_of(resumed)) == numbers_of(all, 2 * epoch_batches + 1));
    }
  };
  check(indexed, 8);
  check(streamed, 4);
}

TEST_CASE("first_epoch is refused where only reading leads to it, with a resume point, and after the last epoch") {
  const auto flow = [] { return mr::from(counted_rows{}) | mr::batch<&row::number>({.size = 4}); };
  const auto session = [&](const mr::session_options& o) { mr::session{flow(), o}; };
  CHECK_THROWS_WITH_AS(
      session({.epochs = 3, .epoch_batches = 3, .threads = 0, .notice = mr::quiet, .first_epoch = 1}),
      doctest::Contains("can start in a later epoch only by reading all earlier epochs"), mr::setup_error);
  CHECK_THROWS_WITH_AS(session({.epochs = 3, .threads = 0, .notice = mr::quiet, .first_epoch = 3}),
                       doctest::Contains("got 3, expected less than the 3 epochs"), mr::setup_error);
  CHECK_THROWS_WITH_AS(
      session({.epochs = 3, .threads = 0, .notice = mr::quiet, .resume = "millrace version=6", .first_epoch = 1}),
      doctest::Contains("got two starts of a run"), mr::setup_error);
}

TEST_CASE("a batch knows whether it has keys and flags") {
  for (const bool has : {false, true}) {
    mr::session run{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4, .pad_last = has, .keys = has}),
                    {.threads = 0, .notice = mr::quiet}};
    auto b = run.next();
    CHECK(b.has_keys() == has);
    CHECK(b.has_flags() == has);
    b.release();
    CHECK_THROWS_AS(static_cast<void>(b.has_keys()), mr::setup_error);
    CHECK_THROWS_AS(static_cast<void>(b.has_flags()), mr::setup_error);
  }
}
