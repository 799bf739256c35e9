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
