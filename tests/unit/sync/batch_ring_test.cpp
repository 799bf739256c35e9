#include <millrace/sync/batch_ring.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;
using outcome = mr::detail::batch_ring::outcome;

namespace {

/// Three slots of two rows, over memory of the test.
struct three_slots {
  std::byte memory[3][16]{};
  mr::detail::batch_ring ring;

  three_slots() { ring.start({.rows = 2, .memory = {memory[0], memory[1], memory[2]}}); }
  void done(std::uint64_t batch) {
    CHECK(ring.rows_done(batch, 2));
    ring.set_ready(batch);
  }
};

}  // namespace

TEST_CASE("a batch is ready when its last row is done, and not before") {
  three_slots t;
  CHECK(t.ring.open_free() == 3);
  CHECK_FALSE(t.ring.rows_done(0, 1));
  CHECK(t.ring.take(0).what == outcome::not_yet);
  CHECK_FALSE(t.ring.can_take(0));
  CHECK(t.ring.rows_done(0, 1));
  CHECK_FALSE(t.ring.can_take(0));   // before it is closed
  t.ring.set_ready(0);
  CHECK(t.ring.can_take(0));
  const auto first = t.ring.take(0);
  CHECK(first.what == outcome::ready);
  CHECK(first.batch.rows == 2);
  CHECK(first.batch.data == t.ring.data(0));
  CHECK(t.ring.take(0).what == outcome::not_yet);   // once
  CHECK(t.ring.in_use() == 1);
}

TEST_CASE("a slot is reused for the next batch only after its release, in whatever order") {
  three_slots t;
  t.ring.open_free();
  std::size_t slot[3];
  for (std::uint64_t b : {0, 1, 2}) {
    t.done(b);
    slot[b] = t.ring.take(b).batch.slot;
  }
  CHECK(t.ring.open_free() == 3);
  t.ring.free(slot[1]);
  CHECK(t.ring.open_free() == 4);
  CHECK(t.ring.data(3) == t.memory[slot[1]]);
  t.ring.free(slot[0]);
  t.ring.free(slot[2]);
  CHECK(t.ring.open_free() == 6);
  CHECK(t.ring.data(4) != t.ring.data(5));
  CHECK(t.ring.in_use() == 0);
}

TEST_CASE("the error with the lowest position replaces the batch") {
  three_slots t;
  t.ring.open_free();
  const auto error = [](const char* text) { return std::make_exception_ptr(std::runtime_error(text)); };
  t.ring.fail(0, 1, error("second"));
  t.ring.fail(0, 0, error("first"));
  t.ring.fail(0, 1, error("again"));
  t.done(0);
  t.done(1);
  CHECK_THROWS_WITH(std::rethrow_exception(t.ring.take(0).batch.error), "first");
  CHECK(t.ring.take(1).batch.error == nullptr);
}

TEST_CASE("void rows shorten a batch, and ends are distinguished") {
  three_slots t;
  t.ring.open_free();
  t.ring.add_void_rows(0, 1);
  t.ring.set_epoch(0, 7);
  t.done(0);
  t.ring.mark_epoch_start(1);
  t.ring.set_end(2);
  const auto first = t.ring.take(0, true);
  CHECK(first.batch.rows == 1);
  CHECK(first.batch.epoch == 7);
  CHECK(t.ring.take(1, true).what == outcome::epoch_end);
  CHECK(t.ring.take(1).what == outcome::not_yet);
  CHECK(t.ring.take(2).what == outcome::end);
  t.ring.free(first.batch.slot);
  CHECK(t.ring.open_free() == 3);   // open slots stay open, and no slot opens after the end
  t.ring.stop();
  CHECK(t.ring.take(1).what == outcome::stopped);
}

TEST_CASE("the start of the epoch of any undelivered batch is known") {
  mr::detail::batch_ring ring;
  CHECK_FALSE(ring.epoch_start_of(0));
  ring.mark_epoch_start(3);
  ring.mark_epoch_start(7);
  ring.mark_epoch_start(8);
  for (std::uint64_t delivered = 0; delivered < 12; ++delivered) {
    ring.forget_epochs_before(delivered);
    for (std::uint64_t batch = delivered; batch < 12; ++batch) {
      const auto start = ring.epoch_start_of(batch);
      CAPTURE(delivered);
      CAPTURE(batch);
      CHECK(start.value_or(0) == (batch < 3 ? 0 : batch < 7 ? 3 : batch < 8 ? 7 : 8));
      CHECK(start.has_value() == (batch >= 3));
      CHECK(ring.starts_epoch(batch) == (batch == 3 || batch == 7 || batch == 8));
    }
  }
}

TEST_CASE("before it is started, nothing opens, but ends can be marked") {
  mr::detail::batch_ring ring;
  CHECK(ring.open_free() == 0);
  ring.set_end(0);
  CHECK(ring.take(0).what == outcome::end);
}
