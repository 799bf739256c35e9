#include <millrace/base/random.hpp>
#include <millrace/measure/values/histogram.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

namespace mr = millrace;

namespace {

/// From one nanosecond to a day, each power of two equally often.
std::uint64_t any_size(mr::rng& random, double octaves = 41) {
  return static_cast<std::uint64_t>(std::exp2(random.uniform() * octaves));
}

}  // namespace

TEST_CASE("the buckets are adjacent without a gap, and each value is in its own") {
  for (std::size_t b = 0; b < mr::distribution::buckets; ++b) {
    CAPTURE(b);
    const std::uint64_t first = mr::distribution::first_of(b), next = mr::distribution::first_of(b + 1);
    REQUIRE(first < next);
    CHECK(mr::distribution::bucket_of(first) == b);
    CHECK(mr::distribution::bucket_of(next - 1) == b);
    // The largest error of a bucket's middle is half a bucket over its first value.
    CHECK(0.5 * static_cast<double>(next - 1 - first) <=
          mr::distribution::quantile_error * static_cast<double>(first));
  }
  CHECK(mr::distribution::first_of(mr::distribution::buckets) == mr::distribution::largest + 1);
  CHECK(mr::distribution::bucket_of(~std::uint64_t{0}) == mr::distribution::buckets - 1);
}

TEST_CASE("quantiles are those of the sorted list, within the stated error") {
  mr::rng random({.seed = 1});
  for (const std::size_t count : {1U, 2U, 3U, 19U, 100U, 5'000U}) {
    CAPTURE(count);
    const auto ours = std::make_unique<mr::detail::histogram>();
    std::vector<std::uint64_t> slow;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      slow.push_back(any_size(random));
      sum += slow.back();
      ours->record(slow.back());
    }
    std::sort(slow.begin(), slow.end());
    const mr::distribution merged = ours->snapshot();
    CHECK(merged.count() == count);
    CHECK(merged.sum() == sum);
    for (const double share : {0.0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0}) {
      CAPTURE(share);
      const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(count)));
      const auto expected = static_cast<double>(slow[std::max<std::size_t>(rank, 1) - 1]);
      CHECK(std::abs(merged.quantile(share) - expected) <= mr::distribution::quantile_error * expected);
    }
  }
}

TEST_CASE("small values have their own buckets: their quantiles are exact") {
  mr::distribution d;
  for (std::uint64_t v = 0; v < 32; ++v) d.add(v);
  CHECK(d.quantile(0.5) == 15);
  CHECK(d.quantile(1) == 31);
  CHECK(d.mean() == 15.5);
}

TEST_CASE("an empty distribution answers 0") {
  const mr::distribution none;
  CHECK(none.quantile(0.99) == 0);
  CHECK(none.mean() == 0);
  CHECK(none.count() == 0);
}

TEST_CASE("a sum equals one histogram of all values, a difference contains the values in between") {
  mr::rng random({.seed = 2});
  const auto a = std::make_unique<mr::detail::histogram>();
  const auto b = std::make_unique<mr::detail::own_histogram>(), all = std::make_unique<mr::detail::own_histogram>();
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t v = any_size(random);
    a->record(v);
    all->record(v);
  }
  const mr::distribution before = a->snapshot();
  mr::distribution expected_window;
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t v = any_size(random), w = any_size(random);
    a->record(v);
    expected_window.add(v);
    b->record(w);
    all->record(v);
    all->record(w);
  }
  CHECK(a->snapshot() - before == expected_window);
  CHECK(a->snapshot() + b->snapshot() == all->snapshot());
  CHECK((before - a->snapshot()).count() == 0);   // in reverse: zero, not 2^64
}

TEST_CASE("nothing is lost when several threads record, and later snapshots never shrink") {
  const auto h = std::make_unique<mr::detail::histogram>();
  constexpr int threads = 4, each = 20'000;
  std::atomic<int> running{threads};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      mr::rng random({.seed = 3, .sample = static_cast<std::uint64_t>(t)});
      for (int i = 0; i < each; ++i) h->record(random.below(1'000));
      running.fetch_sub(1);
    });
  std::uint64_t last = 0;
  bool grew = true;
  while (running.load() > 0) {
    const std::uint64_t now = h->snapshot().count();
    grew = grew && now >= last;
    last = now;
  }
  for (auto& t : all) t.join();
  CHECK(grew);
  CHECK(h->snapshot().count() == threads * each);
}
