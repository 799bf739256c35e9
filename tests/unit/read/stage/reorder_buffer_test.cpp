// The order in which open shards deliver their samples, and the bounds of the samples that wait.
#include "buffer_with_sink.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace {

using mr::detail::shard_order;

/// A source that is informed of its shards, reads one at a time, and reports at the end of a shard.
struct strict_numbers {
  using item = int;
  static constexpr bool one_reader_at_a_time = true;
  struct reader {
    std::optional<int> next() { return std::nullopt; }
    void report(mr::event_counts& counts) const { counts.count("ends"); }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {}; }
  void expect(const std::vector<std::size_t>&) const {}
};

}  // namespace

TEST_CASE("samples are delivered in the order of the shards, whichever shard was read first") {
  buffer_with_sink<> t({.shards = 3});
  auto* const a = t.buffer.open_next();
  auto* const b = t.buffer.open_next();
  auto* const c = t.buffer.open_next();
  CHECK(t.buffer.open_shards() == 3);
  CHECK(t.buffer.front() == a);
  t.append(c, 20, 1);
  t.end(c);
  t.append(b, 10, 2);
  CHECK_FALSE(t.buffer.pass_on());
  CHECK(t.buffer.queued_bytes() == 3 * sizeof(int));
  t.append(a, 0, 2);   // its turn: no queue needed
  CHECK(t.sink.log() == "0 1");
  CHECK(t.buffer.queued_bytes() == 3 * sizeof(int));
  CHECK_FALSE(t.buffer.pass_on());   // shard a may have more
  t.end(a);
  CHECK(t.buffer.pass_on());
  CHECK(t.sink.log() == "0 1 10 11");
  CHECK(t.buffer.queued_bytes() == sizeof(int));
  CHECK(t.buffer.front() == b);
  CHECK(t.buffer.open_shards() == 2);
  t.end(b);
  CHECK(t.pass_on() == "0 1 10 11 20 epoch end");
  CHECK(t.buffer.finished());
  CHECK_FALSE(t.sink.error());
  CHECK(t.buffer.queued_bytes() == 0);
  CHECK(t.buffer.open_shards() == 0);
  CHECK(t.buffer.passed_on() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(t.sink.samples()[i].ordinal == i);
  CHECK_FALSE(t.buffer.pass_on());
}

TEST_CASE("at most as many samples are forwarded as the sink has space for, and later ones wait") {
  buffer_with_sink<> t({.shards = 1});
  auto* const a = t.buffer.open_next();
  t.sink.room = 2;
  t.append(a, 0, 4);
  CHECK(t.sink.log() == "0 1");
  CHECK(a->samples.size() == 2);
  CHECK(t.buffer.queued_bytes() == 2 * sizeof(int));
  CHECK(t.buffer.had_space());   // as at the last pass_on()
  CHECK_FALSE(t.buffer.pass_on());
  CHECK_FALSE(t.buffer.had_space());
  CHECK(t.sink.published == 1);   // also if nothing was passed on
  t.sink.room = 10;
  t.append(a, 4, 1);   // there is space, but two samples precede it
  CHECK(t.sink.log() == "0 1");
  CHECK(t.buffer.queued_bytes() == 3 * sizeof(int));
  t.sink.room = 1;
  CHECK(t.buffer.pass_on());
  CHECK_FALSE(t.buffer.had_space());
  t.sink.room = 10;
  CHECK(t.pass_on() == "0 1 2 3 4");
  CHECK(t.buffer.had_space());
  CHECK(t.buffer.queued_bytes() == 0);
  t.append(a, 5, 1);
  CHECK(t.sink.log() == "0 1 2 3 4 5");
  CHECK(t.buffer.bypasses_queue(*a));
}

TEST_CASE("shards of all epochs are opened as one sequence, and a closed one is reset when it is opened again") {
  buffer_with_sink<> t({.shards = 2}, {.epochs = 2});
  auto* const a = t.buffer.open_next();
  auto* const b = t.buffer.open_next();
  auto* const c = t.buffer.open_next();
  CHECK(a->epoch == 0);
  CHECK(a->ordinal == 0);
  CHECK(a->turn == 0);
  CHECK_FALSE(a->last_of_epoch);
  CHECK(b->ordinal == 1);
  CHECK(b->turn == 1);
  CHECK(b->last_of_epoch);
  CHECK(b->id_key == mr::detail::id_key(1));
  CHECK(c->epoch == 1);
  CHECK(c->ordinal == 0);
  CHECK_FALSE(c->last_of_epoch);
  t.append(a, 0, 1);
  a->next_index = 7;
  a->lost = damage_named("lost");
  t.end(a);
  CHECK(t.pass_on() == "0");
  auto* const d = t.buffer.open_next();
  CHECK(d == a);   // memory of a closed shard is reused
  CHECK_FALSE(d->done);
  CHECK_FALSE(d->begun);
  CHECK_FALSE(d->lost);
  CHECK(d->next_index == 0);
  CHECK(d->epoch == 1);
  CHECK(d->ordinal == 1);
  CHECK(d->id_key == mr::detail::id_key(1));
  CHECK(d->last_of_epoch);
  CHECK(t.buffer.open_next() == nullptr);
  for (auto* const open : {b, c, d}) {
    t.append(open, static_cast<int>(open->turn) + 1, 1);
    t.end(open);
  }
  CHECK(t.pass_on() == "0 2 epoch 1 2 epoch end");
  CHECK(t.buffer.open_next() == nullptr);
}

TEST_CASE("a shard that is ended, being read or not readable is not idle") {
  buffer_with_sink<> t({.shards = 4});
  const auto any = [](const auto&) { return true; };
  CHECK(t.buffer.front() == nullptr);
  CHECK(t.buffer.first_idle(any) == nullptr);
  auto* const a = t.buffer.open_next();
  auto* const b = t.buffer.open_next();
  auto* const c = t.buffer.open_next();
  CHECK(t.buffer.first_idle(any) == a);
  CHECK(t.buffer.unfinished_shards() == 3);
  t.end(a);
  CHECK(t.buffer.first_idle(any) == b);
  CHECK(t.buffer.unfinished_shards() == 2);
  b->has_reader = true;
  CHECK(t.buffer.first_idle(any) == c);
  CHECK(t.buffer.unfinished_shards() == 2);
  CHECK(t.buffer.first_idle([&](const auto& s) { return &s != c; }) == nullptr);
  CHECK(t.buffer.bypasses_queue(*a));
  CHECK_FALSE(t.buffer.bypasses_queue(*b));
}

TEST_CASE("a source that reads one shard at a time identifies its shards, and reports at the end of each") {
  mr::event_counts counts;
  buffer_with_sink<strict_numbers> t({.shards = 3}, {.epochs = 2, .first_shard = 1});
  t.buffer.count_into(counts);
  auto* const a = t.buffer.open_next();
  CHECK(a->coming == std::vector<std::size_t>{1, 2});
  CHECK(t.buffer.open_next() == nullptr);
  a->open.emplace();
  t.end(a);
  CHECK_FALSE(a->open);
  REQUIRE(counts.counts().size() == 1);
  CHECK(counts.counts()[0].times == 1);
  auto* const b = t.buffer.open_next();
  CHECK(b->coming.empty());
  t.append(b, 0, 1);
  t.end(b);   // was never opened, so it has nothing to report
  CHECK(counts.counts()[0].times == 1);
  CHECK(t.buffer.open_next()->coming == std::vector<std::size_t>{0, 1, 2});

  buffer_with_sink<strict_numbers> shuffled({.seed = 3, .shards = 9, .shuffled = true}, {.first_shard = 4});
  auto expected = shuffled.order.shards_of(0);
  expected.erase(expected.begin(), expected.begin() + 4);
  CHECK(shuffled.buffer.open_next()->coming == expected);
}

TEST_CASE("a shuffle delivers samples in the order of their keys, each as soon as its ordinal is certain") {
  for (const std::size_t window : {2U, 5U, 16U}) {
    CAPTURE(window);
    buffer_with_sink<> t({.seed = 11, .shards = 6, .shuffled = true, .window = window, .permutes = false},
                         {.epochs = 2});
    std::vector<int> expected;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const auto shards = t.order.shards_of(epoch);
      std::vector<std::uint64_t> keys;
      std::vector<int> numbers;
      const std::size_t before = expected.size();
      for (const std::size_t ordinal : shards) {
        auto* const open = t.buffer.open_next();
        REQUIRE(open);
        CHECK(open->ordinal == ordinal);
        CHECK_FALSE(t.buffer.bypasses_queue(*open));
        for (int i = 0; i < 8; ++i) {
          const int number = static_cast<int>(epoch * 100 + ordinal * 10) + i;
          keys.push_back(t.order.jitter_key(epoch, keys.size()));
          numbers.push_back(number);
          t.append(open, number, 1);
          t.buffer.pass_on();
          const auto certain = static_cast<std::size_t>(
              std::count_if(keys.begin(), keys.end(), [&](std::uint64_t key) { return key <= keys.size() << 16; }));
          REQUIRE(t.sink.samples().size() == before + certain);
        }
        t.end(open);
      }
      std::vector<std::size_t> by_key(keys.size());
      std::iota(by_key.begin(), by_key.end(), std::size_t{0});
      std::sort(by_key.begin(), by_key.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
      for (const std::size_t i : by_key) expected.push_back(numbers[i]);
      t.buffer.pass_on();
      REQUIRE(t.delivered() == expected);
    }
    CHECK(t.buffer.finished());
    CHECK_FALSE(t.sink.error());
    for (std::size_t i = 0; i < 96; ++i) CHECK(t.sink.samples()[i].ordinal == i % 48);
  }
}

TEST_CASE("the window withholds at most its limit of bytes") {
  const auto trial = [](std::size_t window_bytes, int samples) {
    auto t = std::make_unique<buffer_with_sink<>>(
        shard_order::options{.seed = 4, .shards = 1, .shuffled = true, .window = 16},
        mr::detail::reorder_buffer_options{.window_bytes = window_bytes});
    t->read_shard(samples);
    t->buffer.pass_on();
    CHECK(t->buffer.finished());
    return t;
  };
  const auto enough = trial(16 * sizeof(int), 16);   // withheld until the end: a permutation
  CHECK_FALSE(enough->sink.error());
  CHECK(enough->delivered().size() == 16);
  // One sample more than the budget: the samples are released, which is an error only of so short an epoch.
  CHECK(error_text(trial(15 * sizeof(int), 16)->sink.error()).find("window of 16 for a pass of 16 samples") !=
        std::string::npos);
  const auto longer = trial(14 * sizeof(int), 200);
  CHECK_FALSE(longer->sink.error());
  CHECK(longer->delivered().size() == 200);
  const auto too_small = trial(sizeof(int), 200);
  CHECK(error_text(too_small->sink.error()).find("got 8 bytes in 2 samples, expected at most 4 bytes") !=
        std::string::npos);
  CHECK_THROWS_AS(std::rethrow_exception(too_small->sink.error()), mr::setup_error);
}

TEST_CASE("an epoch delivers as many samples as requested, and the rest of its shards is not read") {
  buffer_with_sink<> t({.shards = 3}, {.epochs = 3, .take = 3});
  auto* const a = t.buffer.open_next();
  auto* const b = t.buffer.open_next();
  t.append(b, 10, 4);
  t.append(a, 0, 2);
  t.end(a);
  CHECK(t.pass_on() == "0 1 10");
  CHECK(t.buffer.queued_bytes() == 0);   // of the samples that were cut
  CHECK(b->cut);
  CHECK_FALSE(b->done);
  auto* const c = t.buffer.open_next();   // instead of the third shard
  CHECK(c->epoch == 1);
  CHECK(c->ordinal == 0);
  t.append(b, 14, 2);   // its reader learns that it has ended
  CHECK(b->done);
  CHECK(b->samples.empty());
  CHECK(t.pass_on() == "0 1 10 epoch");
  auto* const d = t.buffer.open_next();
  auto* const e = t.buffer.open_next();
  CHECK(e->last_of_epoch);
  t.append(d, 110, 1);
  t.end(d, damage_named("not needed"));
  t.append(c, 100, 4);   // more than requested, of the current shard
  t.end(c);
  CHECK(t.pass_on() == "0 1 10 epoch 100 101 102");
  auto* const f = t.buffer.open_next();
  CHECK(f->epoch == 2);   // the last shard of epoch 1 was open already
  CHECK(f->ordinal == 0);
  t.end(e, damage_named("not needed either"));
  CHECK(t.pass_on() == "0 1 10 epoch 100 101 102 epoch");
  t.append(f, 200, 3);
  CHECK(t.pass_on() == "0 1 10 epoch 100 101 102 epoch 200 201 202");
  CHECK(t.buffer.open_next() == nullptr);
  t.end(f);
  CHECK(t.pass_on() == "0 1 10 epoch 100 101 102 epoch 200 201 202 epoch end");
  CHECK_FALSE(t.sink.error());
  CHECK(t.buffer.passed_on() == 9);
}

TEST_CASE("a shuffled epoch delivers as many samples as requested, too") {
  buffer_with_sink<> t({.seed = 2, .shards = 2, .shuffled = true, .window = 3, .permutes = false},
                       {.epochs = 2, .take = 7});
  while (t.read_shard(9)) t.buffer.pass_on();
  t.buffer.pass_on();
  CHECK(t.sink.samples().size() == 14);
  CHECK(t.buffer.finished());
  CHECK(t.buffer.queued_bytes() == 0);
  for (std::size_t i = 0; i < 14; ++i) {
    CHECK(t.sink.samples()[i].ordinal == i % 7);
    CHECK(t.sink.samples()[i].epoch == i / 7);
  }
}
