// The start of a session over parts that the test creates: limits, memory, first samples and notices.
#include "core_with_parts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

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
