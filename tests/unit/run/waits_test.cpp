#include <millrace/millrace.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

namespace mr = millrace;

namespace {

struct row {
  std::int32_t label;
};

/// Three parts of ten rows; the reader of the last one waits in the middle of it.
struct gated_rows {
  using item = row;
  std::atomic<bool>* open_gate;
  std::atomic<int>* at_gate;

  struct reader {
    const gated_rows* from;
    std::int32_t at, end;
    std::optional<row> next() {
      if (at == 25 && ++*from->at_gate > 0)
        while (!*from->open_gate) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return at < end ? std::optional(row{at++}) : std::nullopt;
    }
  };
  std::size_t shards() const { return 3; }
  reader open(std::size_t shard, std::uint64_t) const {
    return {this, static_cast<std::int32_t>(10 * shard), static_cast<std::int32_t>(10 * shard + 10)};
  }
};
struct named_rows : gated_rows {
  std::string shard_name(std::size_t shard) const { return "number-" + std::to_string(shard); }
};
struct metered_rows : gated_rows {
  mr::detail::read_meter* meter;
  mr::detail::read_meter& reads() const { return *meter; }
};

}  // namespace

TEST_CASE("a stalled run names the sample that blocks, not the first one claimed with it") {
  // Cheap at first, so that a claim contains many; then one that does not return.
  std::vector<std::int32_t> numbers(800);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mutex gate;
  std::unique_lock closed(gate);
  std::atomic<int> at_gate{0};
  auto run = mr::session{mr::from(std::move(numbers)) | mr::map([&](std::int32_t n) {
                           if (n == 333) {
                             ++at_gate;
                             const std::lock_guard wait(gate);
                           }
                           return row{n};
                         }) |
                             mr::batch<&row::label>({.size = 400}),
                         {.threads = 1, .io_threads = 1, .notice = mr::quiet}};
  while (at_gate == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string of_batch = run.waits();
  closed.unlock();
  CAPTURE(of_batch);
  CHECK(of_batch.find(" at sample 333 (batch 0)") != std::string::npos);
  CHECK(run.next().size() == 400);
}

TEST_CASE("a stalled run names the part of the user's source that blocks, metered or not") {
  mr::detail::read_meter meter;
  std::atomic<bool> open{false};
  std::atomic<int> at_gate{0};
  const auto waits_of = [&](auto source) {
    open = false;
    at_gate = 0;
    auto run = mr::session{mr::from(source) | mr::batch<&row::label>({.size = 10}),
                           {.threads = 1, .io_threads = 1, .notice = mr::quiet}};
    while (at_gate == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string text = run.waits();
    open = true;
    std::uint64_t batches = 0;
    for (auto& b : run) batches += b.size() == 10;
    CHECK(batches == 3);
    return text;
  };
  const std::string plain = waits_of(gated_rows{&open, &at_gate});
  CHECK_MESSAGE(plain.find("\nread: 1 read in progress, the longest for ") != std::string::npos, plain);
  CHECK_MESSAGE(plain.find(" s: shard 2 of the source; ") != std::string::npos, plain);
  const std::string named = waits_of(named_rows{{&open, &at_gate}});
  CHECK_MESSAGE(named.find(" s: number-2; ") != std::string::npos, named);
  const std::string metered = waits_of(metered_rows{{&open, &at_gate}, &meter});
  CHECK_MESSAGE(metered.find("\nread: no read in progress, now at shard 2 of the source for ") != std::string::npos,
                metered);
}
