// The core of a session over parts that the test creates: loops, accounts, errors and the end, without any thread.
#include "core_with_parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using list = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("batches are delivered in order, each accounted for once, up to the end of the run") {
  core_with_parts t;
  t.add_epoch(0, 10);
  t.start();
  CHECK(t.core.stats().batches == 0);
  CHECK(t.order.accounted.empty());
  CHECK(t.next() == list{0, 1, 2, 3});
  CHECK(t.reader.read == 4);   // no more than the batch needs
  CHECK(t.next() == list{4, 5, 6, 7});
  CHECK(t.order.finished == 0);
  CHECK(t.next() == list{8, 9});
  CHECK(t.core.stats().samples == 10);
  CHECK(t.next().empty());
  CHECK(t.order.accounted == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(t.order.finished == 1);
  const auto s = t.core.stats();
  CHECK(s.batches == 3);
  CHECK(s.samples == 10);
  CHECK(s.samples_read == 10);
  CHECK(s.bytes_read == 100);
  CHECK(s.workers == 0);
  CHECK(s.host_slots == 3);   // the prefetched ones, and that of the step
  CHECK(s.slot_bytes == t.builder.last().batch_bytes());
  const auto f = t.core.statistics();
  CHECK(f.batches == 3);
  CHECK(f.samples == 10);
  CHECK(f.batch_samples == 4);
  CHECK(f.host_slots == 3);
  CHECK(f.device_slots == 0);
  CHECK(f.read_ahead_bytes == 77);
  CHECK(t.core.slots() == 3);
}

TEST_CASE("a loop over an epoch ends with it, and a later loop continues after it") {
  core_with_parts t;
  for (const int first : {0, 100, 200}) t.add_epoch(first, 8);
  t.start();
  CHECK(t.next(true) == list{0, 1, 2, 3});
  CHECK(t.next(true) == list{4, 5, 6, 7});
  CHECK(t.next(true).empty());
  CHECK(t.loop(1) == list{100, 101, 102, 103, 104, 105, 106, 107});
  CHECK_THROWS_WITH_AS(t.loop(0), doctest::Contains("passed epoch 0: got a loop over this epoch, expected epoch 2"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(t.loop(1), doctest::Contains("passed epoch 1"), mr::setup_error);
  CHECK(t.loop(2).size() == 8);
  CHECK_THROWS_WITH_AS(t.loop(2), doctest::Contains("passed epoch 2"), mr::setup_error);
}

TEST_CASE("after its only batch a run has no further loop") {
  core_with_parts t;
  t.add_epoch(0, 3);
  t.start();
  CHECK(t.loop(mr::endless) == list{0, 1, 2});
  CHECK_THROWS_WITH_AS(t.loop(mr::endless), doctest::Contains("the session is over: got another loop"),
                       mr::setup_error);
}

TEST_CASE("a loop that was left is continued by its own epoch, and skipped by a later one") {
  core_with_parts t;
  for (const int first : {0, 100, 200, 300}) t.add_epoch(first, 12);
  t.start();
  CHECK(t.loop(0, 1) == list{0, 1, 2, 3});
  CHECK(t.loop(0, 1) == list{4, 5, 6, 7});
  CHECK(t.loop(2, 1) == list{200, 201, 202, 203});
  CHECK_THROWS_WITH_AS(t.loop(1), doctest::Contains("expected epoch 2 or a later one"), mr::setup_error);
  CHECK(t.loop(3, 3).back() == 311);   // left at its last batch
  CHECK(t.loop(3).empty());
  CHECK_THROWS_WITH_AS(t.loop(3), doctest::Contains("passed epoch 3"), mr::setup_error);
  CHECK_THROWS_WITH_AS(t.loop(mr::endless), doctest::Contains("another loop"), mr::setup_error);
  CHECK_THROWS_WITH_AS(t.loop(3), doctest::Contains("a loop over epoch 3"), mr::setup_error);   // the run is over
}

TEST_CASE("a loop over an epoch without batches keeps the batch of a later one") {
  core_with_parts t;
  t.reader.first_epoch = 2;
  t.add_epoch(200, 4);
  t.add_epoch(300, 4);
  t.start();
  CHECK(t.loop(0).empty());
  CHECK(t.loop(1).empty());
  CHECK(t.loop(2) == list{200, 201, 202, 203});
  CHECK(t.loop(mr::endless) == list{300, 301, 302, 303});
  CHECK(t.order.accounted.size() == 2);
}

TEST_CASE("after a batch of any epoch no loop returns to an earlier one") {
  core_with_parts t;
  t.add_epoch(0, 4);
  t.add_epoch(100, 8);
  t.start();
  CHECK(t.core.next_of_any_epoch());
  CHECK(t.core.next_of_any_epoch());
  CHECK_THROWS_WITH_AS(t.loop(0), doctest::Contains("passed epoch 0"), mr::setup_error);
  CHECK(t.loop(1) == list{104, 105, 106, 107});
}

TEST_CASE("an error of the account replaces the batch, and every later call repeats it") {
  core_with_parts t;
  t.add_epoch(0, 20);
  t.order.bad_batch = 1;
  t.start();
  CHECK(t.next().size() == 4);
  CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("a sample is missing; explained"), mr::conservation_error);
  CHECK(t.reader.log == "start stop join ");
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("has ended with an error: a sample is missing"), mr::setup_error);
  CHECK(t.order.accounted.size() == 2);
  t.core.shut_down();
  CHECK(t.reader.log == "start stop join ");   // once
}

TEST_CASE("an account that does not balance at the end is an error") {
  core_with_parts t;
  t.add_epoch(0, 4);
  t.order.bad_end = true;
  t.start();
  CHECK(t.next().size() == 4);
  CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("an epoch is short"), mr::conservation_error);
}

TEST_CASE("the error of a sample follows all batches before it") {
  core_with_parts t;
  t.add_epoch(0, 4);
  t.reader.epochs[0].push_back({-1});
  t.start();
  CHECK(t.next() == list{0, 1, 2, 3});
  CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("negative; explained"), mr::data_error);
}

TEST_CASE("damaged rows are counted and reported, and the first good sample fixes the shapes") {
  core_options o;
  std::vector<mr::notice> notices;
  o.session.on_damage.policy = mr::damage::mask;
  o.session.notice = [&](const mr::notice& n) { notices.push_back(n); };
  core_with_parts t(o);
  t.reader.epochs = {{{0, true}, {1}, {2}, {-3}, {4}, {5}, {6}, {7}}};
  t.start();
  CHECK(t.core.stats().masked == 0);
  CHECK(t.next() == list{0, 1, 2, 0});
  CHECK(t.core.stats().masked == 2);
  CHECK(t.core.stats().replaced == 0);
  CHECK(std::count_if(notices.begin(), notices.end(), [](const mr::notice& n) {
          return n.kind == mr::notice_kind::damaged_sample;
        }) == 1);
  REQUIRE(t.core.lost());
  t.core.lost()->accept(std::make_exception_ptr(mr::data_error("gone", "Copy it")));
  CHECK(t.core.stats().lost_shards == 1);
  CHECK(t.next() == list{4, 5, 6, 7});
  CHECK(notices.back().kind == mr::notice_kind::lost_shard);
  t.core.shut_down();
  CHECK(notices.back().text.find("2 rows were replaced") == std::string::npos);
  CHECK(notices.back().text.find("2 damaged samples and 1 lost shards") != std::string::npos);
}

TEST_CASE("a trainer that keeps all slots is warned, and may continue after a release") {
  core_with_parts t;
  t.add_epoch(0, 20);
  t.start();
  std::vector<mr::batch_lease> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(t.core.next(false));
  CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("3"), mr::setup_error);
  CHECK(t.reader.log == "start ");
  leases.erase(leases.begin());
  CHECK(t.next() == list{12, 13, 14, 15});
  CHECK(t.core.stats().batches == 4);
}

TEST_CASE("two calls at once are refused, and the next one is not") {
  core_with_parts t;
  {
    const mr::detail::run_core::call first(t.core);
    CHECK_THROWS_AS(mr::detail::run_core::call(t.core), mr::setup_error);
    CHECK_THROWS_AS(mr::detail::run_core::call(t.core), mr::setup_error);   // a refused call frees nothing
  }
  CHECK_NOTHROW(mr::detail::run_core::call(t.core));
  t.core.wait_for_calls();   // no call is left to wait for
  CHECK_FALSE(t.core.is_forked());
}

// The start of a session over parts that the test creates: limits, memory, first samples and notices.
TEST_CASE("the error of the first sample is thrown by the first batch, but a wrong call by the start") {
  core_with_parts bad, wrong;
  bad.reader.epochs = {{{-1}, {2}}};
  CHECK_NOTHROW(bad.start());
  CHECK(bad.reader.log == "start stop join ");
  CHECK_THROWS_WITH_AS(bad.next(), doctest::Contains("negative; explained"), mr::data_error);
  wrong.reader.epochs = {{{999}}};
  CHECK_THROWS_WITH_AS(wrong.start(), doctest::Contains("no such number"), mr::setup_error);
  CHECK(wrong.reader.log == "start stop join ");
}

TEST_CASE("a run without a good sample has no shapes") {
  core_options o;
  o.session.on_damage.policy = mr::damage::replace;
  core_with_parts t(o);
  t.reader.epochs = {{{0, true}}};
  t.start();
  CHECK_THROWS_WITH_AS(t.next(), doctest::Contains("no sample of the run is valid, so the shapes of its batches are "
                                                   "unknown; the error of the first sample: torn"), mr::data_error);
  core_with_parts fails;
  CHECK(fails.core.lost() == nullptr);
}

TEST_CASE("a run whose memory fits exactly starts, and with one byte less it is refused before the first batch") {
  const auto options_of = [](std::size_t memory_bytes) {
    core_options o;
    o.session.memory_bytes = memory_bytes;
    o.session.read_ahead_bytes = 1'000;
    return o;
  };
  const auto trial = [&](std::size_t memory_bytes, std::size_t window) {
    core_with_parts t(options_of(memory_bytes));
    t.order.window_samples = window;
    t.add_epoch(0, 4);
    try {
      t.start();
    } catch (const mr::setup_error& e) {
      CHECK(t.reader.log == "start stop join ");
      CHECK(e.message().find("more memory than its budget") != std::string::npos);
      return std::size_t{0};
    }
    CHECK(t.next().size() == 4);
    return t.core.stats().slot_bytes;
  };
  const std::size_t slot_bytes = trial(std::size_t{1} << 20, 1);
  REQUIRE(slot_bytes > 0);
  CHECK(trial(3 * slot_bytes + 1'000 + 5, 1) == slot_bytes);   // half of a window of one sample of 10 bytes
  CHECK(trial(3 * slot_bytes + 1'000 + 4, 1) == 0);
  CHECK(trial(3 * slot_bytes + 1'000 + 500, 100) == slot_bytes);
  CHECK(trial(3 * slot_bytes + 1'000 + 499, 100) == 0);
}

TEST_CASE("limits that the user omits follow from the budget and the size of a batch") {
  core_options o;
  CHECK(core_with_parts(o).core.budget_bytes() == std::size_t{1} << 20);
  CHECK(core_with_parts(o).core.read_ahead_bytes() == std::size_t{1} << 18);
  o.session.memory_bytes = std::size_t{8} << 30;
  CHECK(core_with_parts(o).core.read_ahead_bytes() == std::size_t{256} << 20);
  o.session.read_ahead_bytes = 12'345;
  CHECK(core_with_parts(o).core.read_ahead_bytes() == 12'345);
  CHECK(core_with_parts(o).core.batch_rows() == 4);
  o.settings.prefetch_batches = 0;
  core_with_parts t(o);
  t.add_epoch(0, 4);
  t.start();
  CHECK(t.core.stats().host_slots == 17);   // sixteen small batches, and that of the step
}

TEST_CASE("options that leave nothing to do are refused at once") {
  core_options no_rows, no_shards, no_epochs;
  no_rows.settings.batch_rows = 0;
  no_shards.settings.shards = 0;
  no_epochs.session.epochs = 0;
  const auto make = [](const core_options& o) { mr::detail::run_core(o.session, o.settings); };
  CHECK_THROWS_WITH_AS(make(no_rows), doctest::Contains("batch() has no rows"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make(no_shards), doctest::Contains("the source has no shards"), mr::setup_error);
  CHECK_THROWS_WITH_AS(make(no_epochs), doctest::Contains("epochs"), mr::setup_error);
}

TEST_CASE("the lines of a stall name the step of the start, then the trainer and the nodes upstream") {
  core_with_parts t;
  t.add_epoch(0, 8);
  CHECK(t.core.waits().find("start: plans the run") == 0);
  CHECK(t.core.waits().find("the reader") == std::string::npos);
  t.start();
  CHECK(t.next().size() == 4);
  const std::string waits = t.core.waits();
  CHECK(waits.find("trainer") == 0);
  CHECK(waits.find("\nworkers: ") < waits.find("\nthe reader"));
  CHECK(waits.ends_with("\nthe reader"));
}

TEST_CASE("the notices of the start are delivered first, and those of the parts with the next batch") {
  core_options o;
  std::string kinds;
  std::string first;
  o.session.notice = [&](const mr::notice& n) {
    if (kinds.empty()) first = n.text;
    kinds += n.kind == mr::notice_kind::start ? "start " : n.kind == mr::notice_kind::order ? "order " : "other ";
  };
  core_with_parts t(o);
  t.add_epoch(0, 12);
  t.start();
  CHECK(kinds == "start order ");
  CHECK(first.find("0 workers, 0 I/O threads") != std::string::npos);
  CHECK(first.ends_with("; an order; some advice"));
  CHECK(t.core.description() == "millrace: " + first + "\nmillrace: an even order");
  t.reader.counts->post({.kind = mr::notice_kind::data, .text = "something"});
  CHECK(t.next().size() == 4);
  CHECK(kinds == "start order other ");
  t.reader.counts->post({.kind = mr::notice_kind::returning_keys, .text = "something else"});
  t.core.shut_down();
  CHECK(kinds == "start order other other ");
}
