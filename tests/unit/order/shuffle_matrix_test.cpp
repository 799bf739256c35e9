// The quality of a shuffle follows from the window and the size of the data set: every source shuffles like a sliding
// window over the complete pass, for every number of shards and ranks. MILLRACE_SHUFFLES=100000 runs the complete
// matrix, up to 100,000 samples with 200 seeds.
#include "shuffle_measures.hpp"

#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shard_order.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;
using shuffle_measures::comparison;
using shuffle_measures::data_set;
using shuffle_measures::order;

namespace {

struct configuration {
  data_set data;
  std::uint64_t window;
};

/// All configurations of a size that can be tested in the available time.
std::vector<configuration> configurations(std::uint64_t most) {
  std::vector<configuration> all;
  for (const std::uint64_t samples : {20U, 40U, 100U, 333U, 1'000U, 10'000U, 100'000U})
    for (const std::uint64_t shards : {1U, 2U, 5U, 40U, 200U})
      for (const std::uint64_t window : {2U, 10U, 20U, 99U, 1'000U, 8'192U, 1'000'000U})
        if (samples <= most && shards <= samples) all.push_back({{samples, shards}, window});
  return all;
}

/// A pass of an exact order, merged from the outputs of the cursors of all ranks.
order pass_of_ranks(const mr::detail::exact_order& plan, const data_set& data, std::uint64_t epoch,
                    std::size_t ranks) {
  const std::vector<std::uint64_t> starts = data.starts();
  order all(data.samples);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    mr::detail::lane_cursor cursor(plan, {.world = {.rank = rank, .size = ranks}, .epoch = epoch});
    while (const auto s = cursor.next()) all[s->position] = starts[s->sample.shard] + s->sample.index;
  }
  return all;
}

/// A pass of a source that is read shard by shard, on one rank.
order pass_of_stream(const mr::detail::shard_order& plan, mr::detail::jitter_order<std::uint64_t>& waiting,
                     const data_set& data, std::uint64_t epoch) {
  const std::vector<std::uint64_t> starts = data.starts();
  order all;
  const auto drain = [&] {
    while (waiting.ready()) all.push_back(*waiting.pop().item);
  };
  for (const std::size_t shard : plan.shards_of(epoch))
    for (std::uint64_t i = starts[shard]; i < starts[shard + 1]; ++i) {
      mr::detail::sample<std::uint64_t> s;
      s.epoch = epoch;
      s.item = i;
      waiting.push(std::move(s));
      drain();
    }
  waiting.end_epoch();
  drain();
  waiting.begin_epoch();
  return all;
}

}  // namespace

TEST_CASE("shuffles: an exact order is a sliding window over the complete pass, for every number of ranks") {
  comparison all("exact order");
  std::size_t number = 0;
  for (const configuration& c : configurations(shuffle_measures::largest_set())) {
    const data_set& data = c.data;
    const std::size_t ranks = std::initializer_list<std::size_t>{1, 2, 3, 5, 8}.begin()[number++ % 5];
    all.add(data, c.window, shuffle_measures::seeds(100), [&](std::uint64_t seed) {
      const mr::detail::exact_order plan({.seed = seed, .counts = data.counts(), .window = c.window,
                                          .global_batch = ranks, .drop_last = false});
      return std::pair(pass_of_ranks(plan, data, 0, ranks), pass_of_ranks(plan, data, 1, ranks));
    });
  }
}

TEST_CASE("shuffles: so is the order of a source that is read from its beginning, of unknown length") {
  comparison all("stream");
  for (const configuration& c : configurations(shuffle_measures::largest_set()))
    for (const bool equal_epochs : {false, true})
      all.add(c.data, c.window, shuffle_measures::seeds(100), [&](std::uint64_t seed) {
        const mr::detail::shard_order plan({.seed = seed, .shards = c.data.shards, .shuffled = true, .window = c.window,
                                            .equal_epochs = equal_epochs});
        mr::detail::jitter_order<std::uint64_t> waiting(plan);
        order first = pass_of_stream(plan, waiting, c.data, 0);
        return std::pair(std::move(first), pass_of_stream(plan, waiting, c.data, 1));
      });
}

TEST_CASE("shuffles: a window of all samples produces every order of four samples equally often") {
  std::size_t times[24] = {};
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    const mr::detail::exact_order plan({.seed = seed, .counts = {2, 2}, .window = 4});
    const data_set data{4, 2};
    order p = pass_of_ranks(plan, data, 0, 1);
    std::size_t number = 0;
    for (std::size_t i = 0; i < 4; ++i)
      number = number * (4 - i) + static_cast<std::size_t>(std::count_if(
                                      p.begin() + static_cast<std::ptrdiff_t>(i), p.end(),
                                      [&](std::uint64_t other) { return other < p[i]; }));
    ++times[number];
  }
  for (const std::size_t n : times) CHECK((n > 880 && n < 1'120));
}

TEST_CASE("shuffles: an explicit number of lanes does not weaken a window of all samples") {
  comparison all("explicit lanes");
  for (const std::size_t lanes : {4U, 48U})
    for (const std::uint64_t samples : {20U, 100U})
      all.add({samples, 2}, samples, 100, [&](std::uint64_t seed) {
        const data_set data{samples, 2};
        const mr::detail::exact_order plan({.seed = seed, .counts = data.counts(), .window = samples, .lanes = lanes,
                                            .drop_last = false});
        return std::pair(pass_of_ranks(plan, data, 0, 1), pass_of_ranks(plan, data, 1, 1));
      });
}

TEST_CASE("shuffles: large sets of many shards have lanes, whatever the ranks, and all others have one") {
  const auto lanes = [](std::uint64_t samples, std::uint64_t shards, std::size_t window) {
    return mr::detail::exact_order({.counts = data_set{samples, shards}.counts(), .window = window}).settings().lanes;
  };
  CHECK(lanes(1'281'167, 1'281, 8'192) == 48);
  CHECK(lanes(1'281'167, 147, 8'192) == 16);
  CHECK(lanes(1'281'167, 1'281, 2'000) == 12);
  CHECK(lanes(1'281'167, 1'281, 100'000) == 1);
  CHECK(lanes(1'281'167, 1, 8'192) == 1);
  CHECK(lanes(200'000, 200, 1'000) == 1);
  CHECK(lanes(1'281'167, 1'281, 2'000'000) == 1);
}
