#include <millrace/base/random.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>
#include <millrace/measure/values/histogram.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
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

TEST_CASE("counts of many threads add up, by text") {
  mr::event_counts counts;
  const std::string same = "one";   // another address
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int n = 0; n < 1000; ++n) {
          counts.count(i % 2 ? "one" : same.c_str());
          counts.count("two", 3);
        }
      });
  }
  std::uint64_t one = 0, two = 0;
  for (const auto& c : counts.counts()) (std::string(c.what) == "one" ? one : two) += c.times;
  CHECK(counts.counts().size() == 2);
  CHECK(one == 4000);
  CHECK(two == 12000);
}

TEST_CASE("the library's own events share their counts with their texts, and are identified by their names") {
  mr::event_counts counts;
  const std::string text = mr::detail::text_of(mr::detail::event_name::warnings);   // another address
  counts.count(text.c_str(), 2);
  counts.count(text_of(mr::detail::event_name::warnings));
  counts.count("mine", 5);
  counts.count(text_of(mr::detail::event_name::own_alone), 3);
  const auto all = counts.counts();
  REQUIRE(all.size() == 3);
  const auto& [what, times] = all[1];   // as in programs of users
  CHECK(std::string(what) == "mine");
  CHECK(times == 5);
  CHECK(mr::detail::event_of_text(all[0].what) == mr::detail::event_name::warnings);
  CHECK(all[0].times == 3);
  CHECK(mr::detail::event_of_text(all[1].what) == mr::detail::event_name::none);
  CHECK(std::string(all[1].what) == "mine");
  CHECK(mr::detail::event_of_text(all[2].what) == mr::detail::event_name::own_alone);
  CHECK(std::string(all[2].what) == "JPEGs by the built-in decoder, alone");
}

TEST_CASE("names beyond the capacity are counted together") {
  mr::event_counts counts;
  std::vector<std::string> names;
  for (int i = 0; i < 54; ++i) names.push_back("name " + std::to_string(i));
  for (const auto& name : names) counts.count(name.c_str());
  const auto all = counts.counts();
  REQUIRE(all.size() == 49);
  CHECK(std::string(all[48].what) == "other");
  CHECK(all[48].times == 6);
}

using mr::detail::event_name;

TEST_CASE("each event has its text, which no other event has") {
  for (const auto& [name, text] :
       {std::pair{event_name::own_together, "JPEGs by the built-in decoder, several at once"},
        std::pair{event_name::own_alone, "JPEGs by the built-in decoder, alone"},
        std::pair{event_name::smaller, "JPEGs decoded smaller"},
        std::pair{event_name::by_entries, "JPEG crops accelerated by entry points"},
        std::pair{event_name::by_restarts, "JPEG crops accelerated by restart markers"},
        std::pair{event_name::entries_refused, "JPEGs with entry points of another file"},
        std::pair{event_name::shared, "images rendered from the planes of another image"},
        std::pair{event_name::progressive, "progressive JPEGs"},
        std::pair{event_name::damaged, "damaged JPEGs accepted"},
        std::pair{event_name::warnings, "warnings of libjpeg"},
        std::pair{event_name::bytes, "bytes of JPEGs"},
        std::pair{event_name::pixels, "pixels of JPEGs"},
        std::pair{event_name::fields_with_entries, "fields read with entry points"},
        std::pair{event_name::fields_refused, "fields with wrong or damaged entry points"}}) {
    CHECK(std::string(mr::detail::text_of(name)) == text);
    CHECK(mr::detail::libjpeg_reason(name) == nullptr);
  }
  for (std::size_t i = 0; i < mr::detail::event_texts.size(); ++i)
    CHECK(static_cast<std::size_t>(mr::detail::event_of_text(mr::detail::event_texts[i])) == i);
}

TEST_CASE("another text is none of the library's own events") {
  CHECK(mr::detail::event_of_text("repaired frames") == event_name::none);
  CHECK(mr::detail::event_of_text("") == event_name::none);
  CHECK(mr::detail::event_of_text("JPEGs by libjpeg: ") == event_name::none);
  CHECK(mr::detail::libjpeg_reason(event_name::none) == nullptr);
}
