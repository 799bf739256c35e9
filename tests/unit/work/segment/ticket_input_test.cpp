// Many samples put at once, against the same samples put one by one.
#include <millrace/base/random.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace mr = millrace;

namespace {

using sample = mr::detail::sample<std::uint64_t>;
using input = mr::detail::ticket_input<std::uint64_t>;

struct gate final : mr::detail::claimed_ticket_gate {
  void set_available(std::uint64_t tickets) override { open = tickets; }
  std::uint64_t available() const noexcept override { return open; }
  void set_last() noexcept override { last = true; }
  std::uint64_t open = 0;
  bool last = false;
};

/// An input, and its used tickets.
struct side {
  explicit side(const input::options& o) : in([&] {
    auto own = o;
    own.batches = &ring;
    return own;
  }()) {
    in.connect(tickets);
  }
  void take(std::uint64_t count) {
    std::size_t bytes = 0, n = 0;
    for (; n < count && tickets_used.size() < tickets.open; ++n) {
      const auto s = in.use(tickets_used.size(), bytes);
      tickets_used.push_back(s->what == sample::kind::item ? *s->item : ~std::uint64_t{0});
    }
    in.freed(n, bytes);
  }

  mr::detail::batch_ring ring;
  gate tickets;
  input in;
  std::vector<std::uint64_t> tickets_used;
};

std::vector<sample> samples_from(std::uint64_t first, std::size_t count) {
  std::vector<sample> samples;
  for (std::size_t i = 0; i < count; ++i)
    samples.push_back({.item = first + i, .ordinal = (first + i) / 3});
  return samples;
}

}  // namespace

TEST_CASE("samples that are put at once get the same tickets as samples that are put one by one") {
  mr::rng random({.seed = 5});
  std::uint64_t partly = 0, ended = 0;
  for (int round = 0; round < 300; ++round) {
    const input::options o{.capacity = std::size_t{1} << random.below(6),
                           .group = 1 + static_cast<std::size_t>(random.below(9)),
                           .drop_partial = random.below(2) == 0,
                           .boundaries = {.skipped_rows = random.below(20), .epoch_batches = random.below(4),
                                       .end_step = random.below(2) == 0 ? mr::detail::batch_ring::unknown : 7}};
    side at_once(o), one_by_one(o);
    std::uint64_t next = 0;
    // Samples after the end are ignored.
    for (int step = 0; step < 60 && !at_once.tickets.last; ++step) {
      const auto count = static_cast<std::size_t>(random.below(50));
      auto many = samples_from(next, count), few = samples_from(next, count);
      const auto put = at_once.in.put_all(many);
      const auto slow = one_by_one.in.sample_sink<std::uint64_t>::put_all(few);
      REQUIRE(put.samples == slow.samples);
      REQUIRE(put.bytes == slow.bytes);
      partly += put.samples < count;
      next += put.samples;
      if (random.below(20) == 0) {
        at_once.in.end_epoch();
        one_by_one.in.end_epoch();
      }
      at_once.in.publish();
      one_by_one.in.publish();
      REQUIRE(at_once.in.held_bytes() == one_by_one.in.held_bytes());
      REQUIRE(at_once.in.next_row() == one_by_one.in.next_row());
      const std::uint64_t taking = random.below(60);
      at_once.take(taking);
      one_by_one.take(taking);
      REQUIRE(at_once.tickets.open == one_by_one.tickets.open);
      REQUIRE(at_once.tickets_used == one_by_one.tickets_used);
      REQUIRE(at_once.tickets.last == one_by_one.tickets.last);
    }
    ended += at_once.tickets.last;
  }
  CHECK(partly > 1'000);
  CHECK(ended > 50);
}
