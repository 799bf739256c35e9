#include <millrace/base/clock.hpp>
#include <millrace/sync/doorbell.hpp>
#include <millrace/sync/queues.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <thread>
#include <vector>

namespace mr = millrace;

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
