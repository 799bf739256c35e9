// Files that will be read are fetched before they are requested, in their order and within a limit.
#include "../../../eventually.hpp"
#include "distant_files.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <functional>
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

// Processes share a cache: one fetches, the others wait, and neither death nor a stop of one blocks the others.
namespace {

/// The reads of a process.
struct process_result {
  std::uint64_t read_bytes = 0;   ///< from below
  std::uint64_t waits = 0, waits_given_up = 0, uncached_bytes = 0;
  bool right = false;
};

/// A child that reads files through its own cache, and reports the result.
class reading_process {
 public:
  reading_process(const cached_place& p, const std::vector<std::string>& names) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ != 0) {
      ::close(pipe_[1]);
      return;
    }
    process_result result{.right = true};
    const auto cache = p.cache();
    for (const std::string& name : names) result.right = read_complete(*cache, name) == p.text(name) && result.right;
    result.read_bytes = p.below->read_bytes;
    const auto statistics = cache->statistics();
    result.waits = statistics.waits;
    result.waits_given_up = statistics.waits_given_up;
    result.uncached_bytes = statistics.uncached_bytes;
    ::_exit(::write(pipe_[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  reading_process(const reading_process&) = delete;
  reading_process& operator=(const reading_process&) = delete;
  ~reading_process() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(pipe_[0]);
  }

  void signal(int number) const { ::kill(child_, number); }
  process_result result() const {
    process_result r;
    return ::read(pipe_[0], &r, sizeof r) == sizeof r ? r : process_result{};
  }

 private:
  int pipe_[2]{};
  pid_t child_ = 0;
};

/// Waits until a process fetches a block; the files' delay is the duration of the fetch.
bool is_fetched(const cached_place& p) {
  return eventually([&] {
    return std::ranges::any_of(p.entries(), [](const auto& entry) { return entry.name.is_part && entry.bytes > 0; });
  });
}

}  // namespace

TEST_CASE("four processes fetch each block once") {
  cached_place p;
  p.options.wait_limit = std::chrono::minutes(5);
  p.below->delay_ms = 10;   // so that all four begin before one ends
  std::vector<std::string> names, backwards;
  std::uint64_t all = 0;
  for (int i = 0; i < 6; ++i) {
    names.push_back("far://" + std::to_string(i));
    backwards.insert(backwards.begin(), names.back());
    p.below->add(names.back(), 3'000 + static_cast<std::size_t>(i) * 3'500);
    all += p.text(names.back()).size();
  }
  std::uint64_t read = 0, waits = 0;
  {
    const reading_process a(p, names), b(p, names), c(p, names), d(p, backwards);
    for (const reading_process* process : {&a, &b, &c, &d}) {
      const process_result r = process->result();
      CHECK(r.right);
      CHECK(r.waits_given_up == 0);
      read += r.read_bytes;
      waits += r.waits;
    }
  }
  CHECK(read == all);
  CHECK(waits > 0);
  CHECK(p.cached_bytes() > all);
}

TEST_CASE("the death of the fetching process is detected at once") {
  cached_place p;
  p.options.wait_limit = std::chrono::minutes(5);
  p.below->add("far://a", 4'000);
  p.below->delay_ms = 600'000;
  const reading_process first(p, {"far://a"});
  REQUIRE(is_fetched(p));
  p.below->delay_ms = 0;
  const reading_process second(p, {"far://a"});
  sleep_ms(50);
  first.signal(SIGKILL);
  const process_result r = second.result();
  CHECK(r.right);
  CHECK(r.read_bytes == 4'000);
  CHECK(r.waits_given_up == 0);
  CHECK(r.uncached_bytes == 0);
  CHECK(p.block_paths().size() == 1);
}

TEST_CASE("a process that is stopped while it fetches delays the others up to the limit") {
  cached_place p;
  p.options.wait_limit = std::chrono::milliseconds(100);
  p.below->add("far://a", 4'000);
  p.below->add("far://b", 4'000);
  p.below->delay_ms = 600'000;
  const reading_process first(p, {"far://a"});
  REQUIRE(is_fetched(p));
  first.signal(SIGSTOP);
  p.below->delay_ms = 0;
  const reading_process second(p, {"far://a", "far://b"});
  const process_result r = second.result();
  CHECK(r.right);
  CHECK(r.waits_given_up == 1);
  CHECK(r.uncached_bytes == 4'000);   // b is cached
  CHECK(!p.path_of("far://b").empty());
}

TEST_CASE("a process that is stopped with the ledger's lock delays the others for seconds, not forever") {
  cached_place p;
  p.below->add("far://a", 9'000);
  CHECK(read_complete(*p.cache(), "far://a") == p.text("far://a"));
  const auto cache = p.cache();
  p.below->add("far://b", 9'000);
  const int ledger = ::open((cache->root() + "/ledger").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(ledger, LOCK_EX) == 0);
  CHECK(read_complete(*cache, "far://a") == p.text("far://a"));
  CHECK(p.notices.empty());
  CHECK(read_complete(*cache, "far://b") == p.text("far://b"));
  CHECK(cache->statistics().uncached_bytes == 9'000);
  REQUIRE(p.notices.size() == 1);
  CHECK(p.notices[0].find("cannot lock") != std::string::npos);
  ::close(ledger);
}
