#include "../run/stall_watchdog.hpp"

#include <millrace/work/dispatcher.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace mr = millrace;

TEST_CASE("a thread that waits for one ticket after the other is woken for each") {
  struct idle final : mr::detail::dispatcher_work {
    void run(std::size_t, std::uint64_t, std::size_t) noexcept override {}
  } work;
  const stall_watchdog watchdog;
  for (int round = 0; round < 20; ++round) {
    const auto tickets = std::make_shared<mr::detail::dispatcher>(work, mr::detail::dispatcher::options{});
    std::atomic<std::uint64_t> seen{0};
    std::thread producer([&] {
      for (std::uint64_t n = 1; n <= 100; ++n) {
        while (seen.load() + 1 < n) std::this_thread::yield();
        if (n % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));   // the other sleeps by now
        tickets->set_available(n);
      }
    });
    for (std::uint64_t ticket = 0; ticket < 100; seen = ++ticket) tickets->wait_for_available(ticket);
    producer.join();
    CHECK(tickets->available() == 100);
  }
}
