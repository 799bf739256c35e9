#include <millrace/base/clock.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/queues.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <thread>
#include <vector>

namespace mr = millrace;
using outcome = mr::detail::batch_ring::outcome;

TEST_CASE("a fifo returns its items in order, whatever the pattern of use") {
  mr::detail::fifo<std::unique_ptr<int>> ours;
  std::deque<int> slow;
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    if ((state >> 60) == 15 && !slow.empty()) {
      const auto run = ours.first_run();
      REQUIRE(!run.empty());
      REQUIRE(run.size() <= slow.size());
      const std::size_t dropped = (state >> 32) % (run.size() + 1);
      for (std::size_t k = 0; k < dropped; ++k) {
        REQUIRE(*run[k] == slow.front());
        slow.pop_front();
      }
      ours.drop_first(dropped);
    } else if ((state >> 60) < 9 || slow.empty()) {
      ours.push(std::make_unique<int>(i));
      slow.push_back(i);
    } else {
      REQUIRE(*ours.pop() == slow.front());
      slow.pop_front();
    }
    REQUIRE(ours.size() == slow.size());
    if (!slow.empty()) REQUIRE(*ours[slow.size() - 1] == slow.back());
  }
  ours.clear();
  CHECK(ours.empty());
}

TEST_CASE("a fifo keeps an element from its push to its end, through growing, and no longer") {
  struct counted {
    int* alive;
    explicit counted(int& a) : alive(&a) { ++a; }
    counted(counted&& other) noexcept : alive(other.alive) { ++*alive; }
    counted& operator=(counted&&) = delete;   // no element overwrites another one
    ~counted() { --*alive; }
  };
  int alive = 0;
  {
    mr::detail::fifo<counted> ours;
    for (int i = 0; i < 100; ++i) ours.push(counted(alive));
    REQUIRE(alive == 100);
    for (int i = 0; i < 30; ++i) ours.drop_first();
    CHECK(ours.pop().alive == &alive);
    REQUIRE(alive == 69);
    ours.reserve(1'000);
    for (int i = 0; i < 40; ++i) ours.push(counted(alive));
    REQUIRE(alive == 109);
    ours.clear();
    REQUIRE(alive == 0);
    ours.push(counted(alive));
  }
  CHECK(alive == 0);
}

TEST_CASE("an item that is used in place frees its entry afterwards, also if its use fails") {
  mr::detail::item_ring<std::shared_ptr<int>> ring(1);
  const auto value = std::make_shared<int>(7);
  ring.put(0, std::shared_ptr<int>(value));
  try {
    const auto used = ring.use(0);
    CHECK(*used == value);
    CHECK_FALSE(ring.can_accept(1));
    throw 1;
  } catch (int) {
  }
  CHECK(ring.can_accept(1));
  CHECK(value.use_count() == 1);
}

TEST_CASE("an entry of a ring has room again after its item was removed") {
  mr::detail::item_ring<int> ring(3);
  REQUIRE(ring.capacity() == 4);
  for (std::uint64_t t : {0, 1, 2, 3}) {
    CHECK(ring.can_accept(t));
    ring.put(t, static_cast<int>(10 + t));
  }
  CHECK_FALSE(ring.can_accept(4));
  CHECK(ring.take(1) == 11);   // out of order
  CHECK_FALSE(ring.can_accept(4));
  CHECK(ring.take(0) == 10);
  CHECK(ring.can_accept(4));
  ring.put(4, 13);
  CHECK(ring.take(4) == 13);
}

TEST_CASE("a ring keeps its items until they are removed, and no longer than the ring itself") {
  const auto value = std::make_shared<int>(7);
  {
    mr::detail::item_ring<std::shared_ptr<int>> ring(2);
    for (std::uint64_t t = 0; t < 5; ++t) {
      ring.put(t, std::shared_ptr<int>(value));
      REQUIRE(value.use_count() == 2);
      CHECK(ring.peek(t) == value);
      CHECK(ring.take(t) == value);
      REQUIRE(value.use_count() == 1);
    }
    ring.put(5, std::shared_ptr<int>(value));
    ring.put(6, std::shared_ptr<int>(value));
    REQUIRE(value.use_count() == 3);
  }
  CHECK(value.use_count() == 1);
}

TEST_CASE("a sleeper is woken by every change that it waits for") {
  mr::detail::doorbell bell;
  std::atomic<int> turn{0};
  std::thread other([&] {
    for (int i = 0; i < 5'000; ++i) {
      bell.wait([&] { return turn.load() == 2 * i + 1; });
      turn.store(2 * i + 2);
      bell.ring();
    }
  });
  for (int i = 0; i < 5'000; ++i) {
    turn.store(2 * i + 1);
    bell.ring();
    bell.wait([&] { return turn.load() == 2 * i + 2; });
  }
  other.join();
  CHECK(turn.load() == 10'000);
}

TEST_CASE("a sleeper with a time limit is woken by its event, and without it at the limit") {
  mr::detail::doorbell bell;
  std::atomic<bool> news{false};
  const auto seconds_slept = [&](std::uint64_t time_ns) {
    const std::uint64_t start = mr::detail::steady_now_ns();
    bell.wait_at_most(time_ns, [&] { return news.load(); });
    return 1e-9 * static_cast<double>(mr::detail::steady_now_ns() - start);
  };
  CHECK(seconds_slept(5'000'000) >= 0.005);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    news.store(true);
    bell.ring();
  });
  CHECK(seconds_slept(60'000'000'000) < 50);
  other.join();
  CHECK(seconds_slept(60'000'000'000) < 50);
}

TEST_CASE("each signal wakes exactly one of several sleepers, whether their time is limited or not") {
  mr::detail::doorbell bell;
  std::atomic<bool> news{false}, over{false};
  std::atomic<int> handled{0};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 6; ++i)
    sleepers.emplace_back([&, limited = i >= 4] {
      const auto claims = [&] { return over.load() || news.exchange(false); };
      while (!over.load()) {
        bool claimed = false;
        const auto notes = [&] { return claimed = claims(); };
        if (limited) bell.wait_at_most(20'000, notes);
        else bell.wait(notes);
        if (claimed && !over.load()) ++handled;
      }
    });
  constexpr int pieces = 20'000;
  for (int i = 0; i < pieces; ++i) {
    news.store(true);
    bell.ring_one();
    while (handled.load() == i) std::this_thread::yield();   // a signal without a sleeper is a hang
  }
  over.store(true);
  bell.ring();
  for (auto& t : sleepers) t.join();
  CHECK(handled.load() == pieces);
}

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
