#include <millrace/base/digest.hpp>
#include <millrace/order/lane_cursor.hpp>
#include <millrace/order/shard_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace mr = millrace;

namespace {

using options = mr::detail::exact_order_options;
using samples = std::vector<mr::detail::located_sample>;

/// A pass's order the slow way: every sample is written down, every key is sorted.
samples slow_pass(const options& o, std::uint64_t pass) {
  samples all;
  for (const std::size_t shard :
       mr::detail::shard_order({.seed = o.seed, .shards = o.counts.size(), .shuffled = o.shuffled}).shards_of(pass))
    for (std::uint64_t i = 0; i < o.counts[shard]; ++i) all.push_back({shard, i});
  if (o.epoch_batches == options::exact_pass && o.drop_last) {
    const std::size_t left_out = all.size() % o.global_batch, stay = all.size() - left_out;
    mr::rng random({.seed = o.seed, .epoch = pass, .sample = ~std::uint64_t{2}, .stage = ~std::uint64_t{2}});
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(o.shuffled ? random.below(stay + 1) : stay);
    all.erase(from, from + static_cast<std::ptrdiff_t>(left_out));
  }
  if (!o.shuffled) return all;
  const std::uint64_t in_shards = std::accumulate(o.counts.begin(), o.counts.end(), std::uint64_t{0});
  if (o.permutes && o.window > 1 && o.window >= in_shards) {
    mr::rng random({.seed = o.seed, .epoch = pass, .sample = ~std::uint64_t{4}, .stage = ~std::uint64_t{4}});
    for (std::uint64_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    return all;
  }
  const std::size_t lane_count = o.lanes == 0 ? 1 : o.lanes;
  std::vector<std::size_t> lengths(lane_count, 0);
  for (std::size_t p = 0; p < all.size(); ++p) ++lengths[p % lane_count];
  samples out(all.size());
  std::size_t begin = 0;
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    const std::uint64_t window = o.window > 1 ? mr::detail::lane_jitter::places(o.window) / lane_count : 0;
    std::vector<std::pair<std::uint64_t, std::size_t>> keys;
    for (std::size_t i = 0; i < lengths[lane]; ++i) {
      mr::rng random({.seed = o.seed,
                       .epoch = pass,
                       .sample = mr::detail::combine_keys(lane, i),
                       .stage = ~std::uint64_t{1}});
      keys.emplace_back((std::uint64_t{i} << 16) + (window > 65'536 ? random.below(window) : 0), i);
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t j = 0; j < keys.size(); ++j) out[j * lane_count + lane] = all[begin + keys[j].second];
    begin += lengths[lane];
  }
  return out;
}

/// The expected epoch `epoch`, computed the slow way.
samples slow_epoch(const options& o, std::uint64_t epoch) {
  if (o.epoch_batches == options::exact_pass) return slow_pass(o, epoch);
  const std::uint64_t length = o.epoch_batches * o.global_batch;
  samples passes, out;
  std::uint64_t next_pass = 0;
  while (passes.size() < (epoch + 1) * length) {
    const samples pass = slow_pass(o, next_pass++);
    passes.insert(passes.end(), pass.begin(), pass.end());
  }
  return {passes.begin() + static_cast<std::ptrdiff_t>(epoch * length),
          passes.begin() + static_cast<std::ptrdiff_t>((epoch + 1) * length)};
}

/// The outputs of the cursors of `world_size` ranks, from `position` on, merged into one order.
samples walked(const mr::detail::exact_order& plan, std::uint64_t epoch, std::uint64_t position,
               std::size_t world_size) {
  std::map<std::uint64_t, mr::detail::located_sample> by_position;
  for (std::size_t rank = 0; rank < world_size; ++rank) {
    mr::detail::lane_cursor cursor(plan, {.world = {.rank = rank, .size = world_size},
                                  .epoch = epoch,
                                  .position = position});
    while (const auto s = cursor.next()) {
      REQUIRE(s->position % world_size == rank);
      REQUIRE(s->epoch == epoch);
      REQUIRE(by_position.emplace(s->position, s->sample).second);
    }
  }
  samples out;
  for (const auto& [p, s] : by_position) {
    REQUIRE(p == position + out.size());
    out.push_back(s);
  }
  return out;
}

/// Settings of all kinds, small enough to try every position.
options random_settings(mr::rng& random) {
  const std::size_t lanes[] = {0, 1, 2, 6, 12, 48}, batches[] = {1, 12, 24, 48};
  options o{.seed = random.bits()};
  for (std::uint64_t shards = 1 + random.below(20); shards > 0; --shards)
    o.counts.push_back(random.chance(0.2) ? 0 : random.chance(0.2) ? 1 : random.below(60));
  o.counts.push_back(12);
  o.lanes = lanes[random.below(6)];
  o.permutes = random.chance(0.7);   // otherwise the order of version 1
  o.global_batch = batches[random.below(4)];
  o.window = random.chance(0.2) ? random.below(3) : random.below(random.chance(0.5) ? 100 : 3'000);
  o.shuffled = !random.chance(0.1);
  o.epoch_batches = random.chance(0.3) ? 1 + random.below(40) : options::exact_pass;
  const std::uint64_t all = std::accumulate(o.counts.begin(), o.counts.end(), std::uint64_t{0});
  o.drop_last = all >= o.global_batch && random.chance(0.5);
  return o;
}

mr::rng draw_for(std::uint64_t test) { return mr::rng({.seed = test}); }

}  // namespace

TEST_CASE("the plan equals writing all samples down and sorting all keys") {
  mr::rng random = draw_for(1);
  for (int round = 0; round < 300; ++round) {
    const options o = random_settings(random);
    const mr::detail::exact_order plan(o);
    const std::uint64_t epoch = random.below(3);
    const samples expected = slow_epoch(o, epoch);
    REQUIRE(plan.positions() == expected.size());
    REQUIRE(walked(plan, epoch, 0, 1) == expected);
    for (std::uint64_t p = 0; p < expected.size(); p += 1 + random.below(5))
      REQUIRE(plan.sample_at(epoch, p).sample == expected[p]);
  }
}

TEST_CASE("from every position on a cursor returns the same as the unbroken one") {
  mr::rng random = draw_for(2);
  std::size_t cuts = 0;
  for (int round = 0; round < 60; ++round) {
    const options o = random_settings(random);
    const mr::detail::exact_order plan(o);
    std::vector<mr::detail::ordered_sample> expected;
    mr::detail::lane_cursor unbroken(plan);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      unbroken.move_to(epoch, 0);
      while (const auto s = unbroken.next()) expected.push_back(*s);
    }
    REQUIRE(expected.size() == 2 * plan.positions());
    for (std::size_t from = 0; from < expected.size(); ++from, ++cuts) {
      mr::detail::lane_cursor resumed(plan, {.epoch = expected[from].epoch, .position = expected[from].position});
      // Far enough to show samples that the cut omitted or repeated; the complete tail now and then.
      const std::size_t end = from % 29 == 0 ? expected.size() : std::min(expected.size(), from + 2 * o.lanes + 3);
      for (std::size_t i = from; i < end; ++i) {
        if (resumed.position() == plan.positions()) resumed.move_to(resumed.epoch() + 1, 0);
        REQUIRE(resumed.next() == expected[i]);
      }
    }
  }
  CHECK(cuts > 10'000);
}

TEST_CASE("the order is the same for every number of ranks, at any start of each") {
  mr::rng random = draw_for(3);
  for (int round = 0; round < 60; ++round) {
    options o = random_settings(random);
    o.global_batch = 120;
    o.drop_last = false;
    const mr::detail::exact_order plan(o);
    const std::uint64_t epoch = random.below(4), from = random.below(plan.positions() + 1);
    const samples expected = walked(plan, epoch, from, 1);
    for (const std::size_t world_size : {2U, 3U, 4U, 5U, 6U, 8U, 12U, 40U, 120U})
      REQUIRE(walked(plan, epoch, from, world_size) == expected);
  }
}

TEST_CASE("a cursor that is moved about returns the same as a new one") {
  mr::rng random = draw_for(4);
  for (int round = 0; round < 30; ++round) {
    options o = random_settings(random);
    const mr::detail::exact_order plan(o);
    mr::detail::lane_cursor moved(plan);
    for (int jump = 0; jump < 20; ++jump) {
      const std::uint64_t epoch = random.below(3), position = random.below(plan.positions() + 1);
      moved.move_to(epoch, position);
      mr::detail::lane_cursor fresh(plan, {.epoch = epoch, .position = position});
      for (std::uint64_t n = random.below(100); n > 0; --n) REQUIRE(moved.next() == fresh.next());
    }
  }
}

TEST_CASE("an exact pass has every sample once, except those that are named as dropped") {
  mr::rng random = draw_for(5);
  for (int round = 0; round < 200; ++round) {
    options o = random_settings(random);
    o.epoch_batches = options::exact_pass;
    const mr::detail::exact_order plan(o);
    const std::uint64_t epoch = random.below(5);
    const samples delivered = walked(plan, epoch, 0, 1), dropped = plan.dropped(epoch);
    CHECK(dropped.size() == plan.dropped_per_pass());
    CHECK(dropped.size() < o.global_batch);
    CHECK(delivered.size() + dropped.size() == plan.samples());
    std::map<std::pair<std::uint64_t, std::uint64_t>, int> counts;
    for (const auto& s : delivered) ++counts[{s.shard, s.index}];
    for (const auto& s : dropped) ++counts[{s.shard, s.index}];
    CHECK(counts.size() == plan.samples());
    for (const auto& [s, times] : counts) REQUIRE((times == 1 && s.second < o.counts[s.first]));
  }
}

TEST_CASE("epochs of N batches, and an endless one, are the same passes one after the other") {
  const options endless{.seed = 4, .counts = {30, 0, 71}, .window = 50, .lanes = 6, .global_batch = 12,
                        .epoch_batches = options::endless};
  options by_batches = endless;
  by_batches.epoch_batches = 5;
  const mr::detail::exact_order one(endless), many(by_batches);
  CHECK(one.positions() == options::endless);
  CHECK(many.positions() == 60);
  mr::detail::lane_cursor a(one, {.world = {.rank = 2, .size = 3}}), b(many, {.world = {.rank = 2, .size = 3}});
  std::map<std::uint64_t, int> in_pass;
  for (int i = 0; i < 2'020; ++i) {
    auto x = a.next(), y = b.next();
    if (!y) {
      b.move_to(b.epoch() + 1, 0);
      y = b.next();
    }
    REQUIRE(x->sample == y->sample);
    REQUIRE(x->pass == y->pass);
    REQUIRE(x->position == y->epoch * 60 + y->position);
    ++in_pass[x->pass];
  }
  for (const auto& [pass, times] : in_pass) CHECK((times == 33 || times == 34));   // 101 samples, three ranks
  CHECK(in_pass.size() == 60);
  CHECK(one.dropped(0).empty());
}

TEST_CASE("a sample moves by less than the window") {
  for (const std::size_t window : {60U, 500U, 4'000U}) {
    const options o{.seed = 9, .counts = {700, 900, 1'400}, .window = window, .lanes = 6, .global_batch = 10};
    options still = o;
    still.window = 1;
    const samples moved = walked(mr::detail::exact_order(o), 1, 0, 1),
      straight = walked(mr::detail::exact_order(still), 1, 0, 1);
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> before;
    for (std::size_t p = 0; p < straight.size(); ++p) before[{straight[p].shard, straight[p].index}] = p;
    std::uint64_t furthest = 0;
    for (std::size_t p = 0; p < moved.size(); ++p) {
      const std::uint64_t q = before.at({moved[p].shard, moved[p].index});
      furthest = std::max(furthest, p > q ? p - q : q - p);
    }
    CHECK(furthest < window);
    CHECK(furthest > std::min<std::uint64_t>(window / 3, 1'000));
  }
}

TEST_CASE("a window of up to one sample a lane leaves each lane unchanged") {
  for (const std::size_t window : {0U, 1U, 6U}) {
    const mr::detail::exact_order plan({.seed = 9, .counts = {30}, .window = window, .lanes = 6, .global_batch = 10});
    for (std::uint64_t p = 0; p < 30; ++p) CHECK(plan.sample_at(0, p).sample.index == p % 6 * 5 + p / 6);
  }
}

TEST_CASE("not shuffled, samples follow in the listed order, and the last are dropped") {
  const mr::detail::exact_order plan({.counts = {2, 0, 3, 6}, .shuffled = false, .global_batch = 4});
  samples expected{{0, 0}, {0, 1}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}};
  CHECK(walked(plan, 0, 0, 1) == expected);
  CHECK(walked(plan, 7, 0, 4) == expected);
  CHECK(plan.dropped(7) == samples{{3, 3}, {3, 4}, {3, 5}});
}

TEST_CASE("the samples that a shuffled pass drops are not always the same") {
  const mr::detail::exact_order plan({.seed = 1, .counts = {1'000}, .lanes = 4, .global_batch = 300});
  std::set<std::uint64_t> first_dropped;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) first_dropped.insert(plan.dropped(epoch).front().index);
  CHECK(first_dropped.size() > 40);
  CHECK(*first_dropped.rbegin() <= 900);
}

TEST_CASE("batches and rows are known before the first, and the same for every rank") {
  const mr::detail::exact_order dropping({.counts = {60, 41}, .lanes = 12, .global_batch = 12});
  CHECK(dropping.batches() == 8);
  const mr::detail::exact_order keeping({.counts = {60, 41}, .lanes = 12, .global_batch = 12, .drop_last = false});
  CHECK(keeping.batches() == 9);
  for (const std::size_t world_size : {1U, 2U, 4U, 12U}) {
    std::size_t in_last = 0;
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      const mr::world r{.rank = rank, .size = world_size};
      for (std::uint64_t b = 0; b < 8; ++b) {
        CHECK(dropping.rows(b, r) == 12 / world_size);
        CHECK(keeping.rows(b, r) == 12 / world_size);
      }
      CHECK(dropping.rows(8, r) == 0);
      std::size_t counted = 0;
      mr::detail::lane_cursor cursor(keeping, {.world = r, .position = 96});
      while (cursor.next()) ++counted;
      CHECK(keeping.rows(8, r) == counted);
      in_last += counted;
    }
    CHECK(in_last == 5);
  }
}

TEST_CASE("options without a valid order, and ranks that would change it, are refused by name") {
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const mr::setup_error& e) {
      return e.message();
    }
    return "no error";
  };
  const auto plan_of = [](options o) { return [o] { mr::detail::exact_order{o}; }; };
  CHECK(message_of(plan_of({.counts = {5}, .global_batch = 0})) == "the batch size is 0");
  CHECK(message_of(plan_of({.counts = {0, 0}})) == "no shard has a sample");
  CHECK(message_of(plan_of({})) == "no shard has a sample");
  CHECK(message_of(plan_of({.counts = {5}, .global_batch = 6})) ==
        "an epoch has only 5 samples, fewer than the global batch of 6, and drop_last drops them");
  CHECK(message_of(plan_of({.counts = {~std::uint64_t{0}, 2}})) == "the shards have 2^40 samples or more in total");
  CHECK(message_of(plan_of({.counts = {5}, .global_batch = 8, .epoch_batches = ~std::uint64_t{0} - 1})) ==
        "an epoch of 18446744073709551614 batches is too long");

  const mr::detail::exact_order plan({.counts = {1'000}, .lanes = 12, .global_batch = 64});
  const auto as_rank = [&](std::size_t rank, std::size_t of) {
    return [&plan, rank, of] { mr::detail::lane_cursor(plan, {.world = {.rank = rank, .size = of}}); };
  };
  CHECK(message_of(as_rank(3, 4)) == "no error");
  CHECK(message_of(as_rank(0, 3)) == "the global batch of 64 is not divisible by 3 ranks");
  CHECK(message_of(as_rank(0, 8)) == "no error");   // ranks share the 12 lanes
  CHECK(message_of(as_rank(2, 2)) == "the world is invalid: got rank 2 of 2");
  CHECK(message_of(as_rank(0, 0)) == "the world is invalid: got rank 0 of 0");
  CHECK(message_of([&] { plan.sample_at(0, 960); }) == "position 960 is out of range: an epoch has 960 positions");
  CHECK(message_of([&] { mr::detail::lane_cursor(plan, {.position = 961}); }) ==
        "position 961 is out of range: an epoch has 960 positions");
  CHECK(message_of([&] { mr::detail::lane_cursor(plan, {.position = 960}); }) == "no error");
  const mr::detail::exact_order endless({.counts = {5}, .epoch_batches = options::endless});
  CHECK(message_of([&] { endless.sample_at(1, 0); }) == "epoch 1 does not exist");
}

TEST_CASE("the widest window shuffles the complete pass, and the keys of older orders do not overflow") {
  for (const bool permutes : {true, false}) {
    const mr::detail::exact_order plan({.seed = 2, .counts = {2'000}, .window = ~std::size_t{0}, .lanes = 1,
                                        .global_batch = 10, .permutes = permutes});
    std::vector<std::uint64_t> indexes;
    double first_half = 0;
    mr::detail::lane_cursor cursor(plan);
    while (const auto s = cursor.next()) {
      if (s->position < 1'000) first_half += static_cast<double>(s->sample.index) / 1'000;
      indexes.push_back(s->sample.index);
    }
    CHECK(first_half > 950);
    CHECK(first_half < 1'050);
    std::sort(indexes.begin(), indexes.end());
    for (std::size_t i = 0; i < indexes.size(); ++i) REQUIRE(indexes[i] == i);
  }
}

// A change of these numbers changes the order of every existing run: change the resume point's version too.
TEST_CASE("the order is pinned") {
  const mr::detail::exact_order plan({.seed = 7, .counts = {10, 3, 0, 8, 14}, .window = 24, .lanes = 4,
                                      .global_batch = 16});
  const auto row = [&](std::uint64_t epoch) {
    std::string text;
    for (std::uint64_t p = 0; p < plan.positions(); ++p) {
      const auto s = plan.sample_at(epoch, p).sample;
      text += std::to_string(s.shard) + "." + std::to_string(s.index) + " ";
    }
    return text;
  };
  CHECK(row(0) ==
        "0.0 0.8 3.7 4.7 0.3 0.9 3.6 4.6 0.4 3.0 4.1 4.9 0.1 3.3 4.5 4.8 "
        "0.2 3.2 4.0 4.10 0.5 3.1 4.4 4.12 0.7 3.4 4.2 4.11 0.6 3.5 4.3 4.13 ");
  CHECK(row(1) ==
        "1.0 3.5 4.8 0.2 1.1 3.6 4.10 0.7 3.0 4.2 4.9 0.4 1.2 4.5 0.0 0.6 "
        "3.1 4.3 0.1 0.3 3.4 4.4 4.11 0.8 3.2 4.6 4.12 0.5 3.3 4.7 4.13 0.9 ");

  const mr::detail::exact_order small({.seed = 7, .counts = {10, 3, 0, 8, 14}, .window = 35, .global_batch = 16});
  std::string permuted;
  for (std::uint64_t p = 0; p < 12; ++p) {
    const auto s = small.sample_at(1, p).sample;
    permuted += std::to_string(s.shard) + "." + std::to_string(s.index) + " ";
  }
  CHECK(permuted == "1.2 3.5 4.7 1.1 3.1 4.8 3.4 0.7 3.0 4.9 4.2 0.3 ");

  const mr::detail::exact_order large({.seed = 7, .counts = std::vector<std::uint64_t>(1'281, 1'000),
                                       .global_batch = 256});
  mr::detail::lane_cursor cursor(large, {.epoch = 89, .position = 640'000});
  mr::detail::stream_digest digest;
  for (int i = 0; i < 10'000; ++i) {
    const auto s = *cursor.next();
    digest.add(s.position, s.sample.id());
  }
  CHECK(digest.value() == 91160756040289613U);
}
