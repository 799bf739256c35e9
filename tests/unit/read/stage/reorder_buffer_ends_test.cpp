// The begin and the end of a run over open shards: resume points, errors, lost shards and empty epochs.
#include "buffer_with_sink.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace {

using mr::detail::replay_log;
using mr::detail::shard_order;

/// An item that shows whether it still exists.
struct live_number {
  int number = 0;
  std::shared_ptr<int> owner{};
};
struct live_numbers {
  using item = live_number;
  struct reader {
    std::optional<live_number> next() { return std::nullopt; }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {}; }
};

mr::replay_point point_of_batch(replay_log& log, const replay_log::batch_end& last_row) {
  log.batch_ends(last_row);
  return log.take();
}

}  // namespace

TEST_CASE("a resumed run opens the shards that it still needs, and drops the delivered samples") {
  const shard_order order({.shards = 3});
  replay_log log(order, mr::detail::replay_start::sample, false);
  buffer_with_sink<> t({.shards = 3}, {.epochs = 3, .first_epoch = 1, .first_shard = 1, .first_sample = 4,
                                       .first_ordinal = 6, .log = &log});
  t.sink.next_position = 30;
  auto* const a = t.buffer.open_next();
  CHECK(a->epoch == 1);
  CHECK(a->ordinal == 1);
  t.append(a, 110, 3);
  CHECK(t.sink.log() == "112");
  CHECK(t.sink.samples()[0].ordinal == 6);
  CHECK(t.buffer.passed_on() == 3);
  CHECK(a->first_row == mr::error_location::unknown);   // was delivered before
  auto* const b = t.buffer.open_next();
  t.append(b, 120, 1);
  t.end(a);
  t.end(b);
  CHECK(t.pass_on() == "112 120 epoch");
  CHECK(b->first_row == 31);
  auto* const c = t.buffer.open_next();
  CHECK(c->epoch == 2);
  CHECK(c->ordinal == 0);
  t.append(c, 200, 2);   // all of the next epoch are delivered
  CHECK(t.sink.log() == "112 120 epoch 200 201");
  CHECK(t.sink.samples()[2].ordinal == 0);
  CHECK(c->first_row == 32);

  const auto first = point_of_batch(log, {.pass = 1, .ordinal = 6, .rows_of_ordinal = 1});
  CHECK(first.shard == 1);
  CHECK(first.first == 4);
  const auto second = point_of_batch(log, {.pass = 1, .ordinal = 7, .rows_of_ordinal = 1});
  CHECK(second.shard == 2);
  CHECK(second.first == 7);
  const auto third = point_of_batch(log, {.pass = 2, .ordinal = 1, .rows_of_ordinal = 1});
  CHECK(third.shard == 0);
  CHECK(third.first == 0);
}

TEST_CASE("the log says how many samples preceded a shard, although the window still buffers some") {
  const shard_order order({.seed = 5, .shards = 3, .shuffled = true, .window = 8, .permutes = false});
  replay_log log(order, mr::detail::replay_start::sample, false);
  buffer_with_sink<> t(order.settings(), {.log = &log});
  while (t.read_shard(10)) t.buffer.pass_on();
  t.buffer.pass_on();
  for (const std::uint64_t ordinal : {16U, 17U, 26U, 27U}) {
    const auto point = point_of_batch(log, {.pass = 0, .ordinal = ordinal, .rows_of_ordinal = 1});
    const std::uint64_t turn = (ordinal - 7) / 10;   // the sample has an earlier index by less than the window
    CHECK(point.shard == turn);
    CHECK(point.first == 10 * turn);
  }
}

TEST_CASE("bytes of dropped samples are no longer queued, with and without a shuffle") {
  for (const bool shuffled : {false, true}) {
    CAPTURE(shuffled);
    buffer_with_sink<> t({.seed = 1, .shards = 2, .shuffled = shuffled, .window = 2, .permutes = false},
                         {.first_ordinal = 5});
    auto* const a = t.buffer.open_next();
    auto* const b = t.buffer.open_next();
    t.append(b, 10, 3);
    t.append(a, 0, 4);
    CHECK(t.buffer.queued_bytes() == (shuffled ? 7 : 3) * sizeof(int));
    t.end(a);
    t.end(b);
    t.buffer.pass_on();
    CHECK(t.buffer.queued_bytes() == 0);
    CHECK(t.sink.samples().size() == 2);
    CHECK(t.buffer.passed_on() == 7);
    CHECK(t.sink.samples()[0].ordinal == 5);
  }
}

TEST_CASE("the error of a shard follows all samples before it, and ends the run") {
  buffer_with_sink<> t({.shards = 3});
  auto* const a = t.buffer.open_next();
  auto* const b = t.buffer.open_next();
  auto* const c = t.buffer.open_next();
  t.append(c, 20, 1);
  t.end(c);
  t.append(b, 10, 2);
  t.end(b, damage_named("torn"));
  CHECK(t.pass_on().empty());
  t.append(a, 0, 1);
  t.end(a);
  CHECK(t.pass_on() == "0 10 11 failed");
  CHECK(error_text(t.sink.error()).find("torn") != std::string::npos);
  CHECK(t.buffer.finished());
  t.append(c, 21, 1);   // later samples are ignored
  CHECK(t.pass_on() == "0 10 11 failed");
  CHECK(t.buffer.open_next() == nullptr);
}

TEST_CASE("a late error names the samples that may be wrong") {
  using suspect = mr::late_data_error::suspect_samples;
  struct observation {
    suspect which;
    std::uint64_t first;
    bool exact;
  };
  const auto trial = [](int samples, bool shuffled, std::uint64_t first_ordinal) {
    buffer_with_sink<> t({.shards = 1, .shuffled = shuffled, .window = 2, .permutes = false},
                         {.first_ordinal = first_ordinal});
    t.sink.next_position = 40;
    auto* const a = t.buffer.open_next();
    t.append(a, 0, samples);
    t.end(a, std::make_exception_ptr(mr::late_data_error("a checksum", {})));
    t.buffer.pass_on();
    try {
      std::rethrow_exception(t.sink.error());
    } catch (const mr::late_data_error& late) {
      return observation{late.suspects(), late.first_suspect(), late.is_exact()};
    }
  };
  CHECK(trial(0, false, 0).which == suspect::none);
  CHECK(trial(2, false, 1).which == suspect::some);   // its first sample was delivered before the resume
  const observation exact = trial(2, false, 0), shuffled = trial(2, true, 0);
  CHECK(exact.which == suspect::since);
  CHECK(exact.first == 40);
  CHECK(exact.exact);
  CHECK(shuffled.which == suspect::since);
  CHECK_FALSE(shuffled.exact);
}

TEST_CASE("a run may lose shards, but only up to a limit, and only by damage") {
  const auto trial = [](std::uint64_t at_most, const std::vector<std::exception_ptr>& errors) {
    mr::detail::lost_shards lost(at_most);
    buffer_with_sink<> t({.shards = errors.size()}, {.lost = &lost});
    for (std::size_t i = 0; i < errors.size(); ++i) {
      auto* const open = t.buffer.open_next();
      t.append(open, static_cast<int>(i), 1);
      t.end(open, errors[i]);
    }
    t.buffer.pass_on();
    CHECK(lost.take_new().size() == std::min<std::size_t>(at_most, lost.count()));
    return t.sink.log();
  };
  const auto bad = damage_named("torn");
  CHECK(trial(2, {bad, nullptr, bad}) == "0 1 2 epoch end");
  CHECK(trial(1, {bad, nullptr, bad, nullptr}) == "0 1 2 failed");
  CHECK(trial(2, {nullptr, std::make_exception_ptr(mr::setup_error("wrong", "Change it")), nullptr}) == "0 1 failed");
}

TEST_CASE("an epoch without a sample ends the run, unless it may be empty or was begun before") {
  const auto trial = [](const std::vector<int>& samples, mr::detail::reorder_buffer_options o) {
    buffer_with_sink<> t({.shards = 2}, o);
    for (const int count : samples)
      if (!t.read_shard(count)) break;
    t.buffer.pass_on();
    if (t.sink.error()) CHECK_THROWS_AS(std::rethrow_exception(t.sink.error()), mr::detail::no_sample_error);
    return t.sink.log() + (t.sink.error() ? ": " + error_text(t.sink.error()).substr(10, 79) : "");
  };
  CHECK(trial({0, 0}, {}) ==
        "failed: the source has no sample: its 2 shards were read to the end in epoch 0. Inspect");
  CHECK(trial({0, 0, 0, 1}, {.epochs = 2, .may_be_empty = true}) == "epoch 110 epoch end");
  CHECK(trial({0, 1}, {}) == "10 epoch end");
  CHECK(trial({1, 0, 0, 0}, {.epochs = 2}) ==
        "0 epoch failed: the source has no sample: its 2 shards were read to the end in epoch 1. Inspect");
  CHECK(trial({0}, {.first_shard = 1, .first_sample = 3}) == "epoch end");   // its samples were delivered before
}

TEST_CASE("the end that the caller sets uses the next position, and drops the buffered samples of the window") {
  buffer_with_sink<live_numbers> t({.shards = 1, .shuffled = true, .window = 8});
  auto* const a = t.buffer.open_next();
  const auto owner = std::make_shared<int>(0);
  std::vector<mr::detail::sample<live_number>> samples;
  for (int n = 0; n < 3; ++n) samples.push_back({.item = live_number{n, owner}});
  t.buffer.append(*a, samples);
  samples.clear();
  CHECK(t.pass_on().empty());
  CHECK(owner.use_count() == 4);
  t.buffer.finish(damage_named("no memory"));
  CHECK(owner.use_count() == 1);
  CHECK(t.sink.log() == "failed");
  CHECK(t.buffer.finished());
  t.end(a);
  CHECK_FALSE(t.buffer.pass_on());
  CHECK(t.sink.log() == "failed");
}
