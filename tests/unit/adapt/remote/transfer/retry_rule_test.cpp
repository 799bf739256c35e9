#include <millrace/adapt/remote/transfer/retry_rule.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

}  // namespace

TEST_CASE("pauses double up to a bound, are drawn from 0 on, and are at least as long as the server requests") {
  const mr::remote_retries rule{.attempts = 100,
                                .limit = std::chrono::seconds(1'000'000),
                                .first_pause = std::chrono::seconds(1),
                                .longest_pause = std::chrono::seconds(5)};
  mr::detail::retry_state state(0);
  for (const double bound : {1.0, 2.0, 4.0, 5.0, 5.0}) {
    mr::detail::retry_state same = state;
    CHECK(*state.next_pause_ns(rule, 0, 0.5, 0) == static_cast<std::int64_t>(0.5 * bound * 1e9));
    CHECK(*same.next_pause_ns(rule, 0, 0, 0) == 0);
  }
  CHECK(*state.next_pause_ns(rule, 0, 0.5, 60 * second_ns) == 60 * second_ns);
}

TEST_CASE("attempts end by their number, and by the time since the last progress") {
  const mr::remote_retries rule{.attempts = 3, .limit = std::chrono::seconds(10), .first_pause = {}};
  mr::detail::retry_state state(0);
  CHECK(state.next_pause_ns(rule, 0, 0, 0));
  CHECK(state.next_pause_ns(rule, 0, 0, 0));
  state.record_progress(10, 1'000'000, 5 * second_ns);        // too few bytes to count
  CHECK_FALSE(state.next_pause_ns(rule, 5 * second_ns, 0, 0));
  mr::detail::retry_state fresh(0);
  CHECK_FALSE(fresh.next_pause_ns(rule, 11 * second_ns, 0, 0));
  mr::detail::retry_state server_pause(0);
  CHECK_FALSE(server_pause.next_pause_ns(rule, 0, 0, 11 * second_ns));   // at once, instead of waiting in vain
}

TEST_CASE("progress restarts the count, and no request continues forever") {
  const mr::remote_retries rule{.attempts = 3, .limit = std::chrono::seconds(10), .first_pause = {}};
  mr::detail::retry_state state(0);
  int attempts = 0;
  for (std::int64_t now_ns = 0; attempts < 1000; now_ns += 9 * second_ns, ++attempts) {
    state.record_progress(300'000, 8'000'000, now_ns);
    if (!state.next_pause_ns(rule, now_ns, 0, 0)) break;
  }
  CHECK(attempts == mr::detail::retry_state::max_attempts - 1);
  mr::detail::retry_state small(0);
  for (int i = 0; i < 5; ++i) {
    small.record_progress(20, 100, 0);   // a large part of a small range
    CHECK(small.next_pause_ns(rule, 0, 0, 0));
  }
}

TEST_CASE("a few late requests are hedged, but none if many are late") {
  mr::detail::hedge_rule rule({.share = 0.05, .least_wait = std::chrono::milliseconds(500)});
  CHECK(rule.late_seconds() == 0.5);
  CHECK(rule.take(1, 10));
  CHECK_FALSE(rule.take(1, 10));   // one for the start; requests that succeed add more
  for (int i = 0; i < 256; ++i) rule.record_first_byte(i % 10 == 0 ? 1.0 : 0.1);
  CHECK(rule.late_seconds() == doctest::Approx(3.0));
  CHECK_FALSE(rule.take(5, 10));
  int hedges = 0;
  while (rule.take(1, 10)) ++hedges;
  CHECK(hedges == 4);
  mr::detail::hedge_rule none({.share = 0});
  CHECK_FALSE(none.take(1, 10));
}
