// Files that will be read are fetched before they are requested, in their order and within a limit.
#include "../../../eventually.hpp"
#include "cached_place.hpp"

#include <doctest/doctest.h>

#include <thread>

namespace mr = millrace;
using mr::detail::cache_plan;

namespace {

std::vector<std::string> next_names(cache_plan& plan, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(*plan.next());
  return names;
}

void expect(auto& of, const std::vector<std::string>& names) { of.expect(names); }

}  // namespace

TEST_CASE("lists alternate, each in its order; files that were read or fetched are not fetched again") {
  cache_plan plan(1'000);
  expect(plan, {"a", "b", "c", "d"});
  expect(plan, {"x", "b", "y"});
  plan.closed("c");
  CHECK(next_names(plan, 5) == std::vector<std::string>{"a", "x", "b", "y", "d"});
  expect(plan, {"c", "a"});   // a is still ahead
  CHECK(next_names(plan, 1) == std::vector<std::string>{"c"});
  plan.closed("a");
  expect(plan, {"a"});
  CHECK(next_names(plan, 1) == std::vector<std::string>{"a"});
}

TEST_CASE("prefetched files stay below the limit until readers close them") {
  cache_plan plan(1'000);
  expect(plan, {"a", "b"});
  CHECK(plan.next() == "a");
  CHECK(plan.wait_for_room("a"));
  plan.add("a", 600);
  CHECK(plan.wait_for_room("a"));
  plan.add("a", 600);
  std::atomic<bool> went_on{false};
  std::thread other([&] {
    CHECK(plan.next() == "b");
    went_on = true;
  });
  std::thread same([&] { CHECK(!plan.wait_for_room("a")); });   // a reader has already reached its end
  sleep_ms(50);
  CHECK(!went_on);
  plan.closed("a");
  other.join();
  same.join();
  std::thread last([&] { CHECK(!plan.next()); });
  plan.stop();
  last.join();
  CHECK(!plan.wait_for_room("b"));
}

TEST_CASE("readers that stopped early are forgotten") {
  cache_plan plan(1'000);
  expect(plan, {"old"});
  CHECK(plan.next() == "old");
  plan.add("old", 5'000);
  for (int i = 0; i < 200; ++i) expect(plan, {"n" + std::to_string(i)});
  CHECK(plan.next() == "n72");
}

TEST_CASE("a cache fetches expected files, and readers find them there") {
  cached_place p;
  std::vector<std::string> names{"far://none"};
  std::uint64_t all = 0;
  for (int i = 0; i < 9; ++i) {
    names.push_back("far://" + std::to_string(i));
    p.below->add(names.back(), 9'000);
    all += 9'000;
  }
  p.below->add("far://plain", 5'000, "");
  names.insert(names.begin() + 3, "far://plain");
  const auto cache = p.cache();
  cache->expect(names);
  REQUIRE(eventually([&] { return p.below->read_bytes == all; }));
  REQUIRE(eventually([&] { return p.block_paths().size() == 27; }));
  for (int i = 0; i < 9; ++i)
    CHECK(read_complete(*cache, "far://" + std::to_string(i)) == p.text("far://" + std::to_string(i)));
  CHECK(p.below->read_bytes == all);
  const mr::cache_statistics f = cache->statistics();
  CHECK(f.prefetched_bytes == all);
  CHECK(f.misses == 0);
  CHECK(f.hits == 27);
  CHECK(f.files_without_version == 0);
  CHECK(p.notices.empty());
}

TEST_CASE("fetching ahead stops at its limit, and continues as files are closed") {
  cached_place p;
  p.options.bytes = 20 * cached_place::block_on_disk;
  p.options.prefetched_bytes = 20'000;
  p.options.prefetched_files = 1;
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) {
    names.push_back("far://" + std::to_string(i));
    p.below->add(names.back(), 9'000);
  }
  const auto cache = p.cache();
  cache->expect(names);
  REQUIRE(eventually([&] { return cache->statistics().prefetched_bytes >= 20'000; }));
  sleep_ms(100);
  CHECK(cache->statistics().prefetched_bytes < 20'000 + 4'096);
  CHECK(!p.path_of("far://0").empty());
  CHECK(p.path_of("far://3").empty());
  CHECK(read_complete(*cache, "far://0") == p.text("far://0"));
  CHECK(eventually([&] { return !p.path_of("far://3").empty(); }));
}

TEST_CASE("errors below and slow storages block neither readers nor the end") {
  cached_place p;
  p.below->add("far://a", 9'000);
  p.below->add("far://b", 9'000);
  p.below->fails_from = 0;
  auto cache = p.cache();
  cache->expect(std::vector<std::string>{"far://a", "far://b"});
  REQUIRE(eventually([&] { return p.below->reads > 0; }));
  p.below->fails_from = ~std::uint64_t{0};
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  p.options.prefetched_files = 0;
  cache = p.cache();
  const std::uint64_t read = p.below->read_bytes;
  p.below->add("far://c", 9'000);
  cache->expect(std::vector<std::string>{"far://c"});
  sleep_ms(50);
  CHECK(p.below->read_bytes == read);
}
