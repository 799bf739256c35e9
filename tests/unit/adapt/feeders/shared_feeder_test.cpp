// Several ranks share a feeder: its windows, and the rows that each rank receives.
#include "feeder_rows.hpp"

#include <millrace/adapt/feeders.hpp>
#include <millrace/adapt/feeders/feeder_client.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/session_report.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace mr = millrace;

namespace {

struct shared_row {
  std::int32_t number;
};

/// 1,200 numbers, each of which needs `pause`.
auto shared_flow(std::chrono::milliseconds pause) {
  const auto prepare = [pause](int number) {
    std::this_thread::sleep_for(pause);
    return shared_row{number};
  };
  return mr::from(numbers(1'200), {.seed = 5}) | mr::shuffle({.window = 100}) | mr::map(prepare) |
         mr::batch<&shared_row::number>({.size = 10});
}

struct shared_result {
  long sum = 0;
  std::size_t fed_rows = 0;
  mr::feeder_statistics feeder{};
  std::string report{};
};

/// Runs one rank.
shared_result run_of_rank(mr::world rank, const std::string& address, std::chrono::milliseconds pause) {
  auto options = quiet(1, 1);
  options.world = rank;
  std::shared_ptr<mr::feeder_storage> storage;
  if (!address.empty()) {
    storage = mr::feeders({.hosts = {address}, .notice = mr::quiet});
    options.rows = storage;
  }
  mr::session run{shared_flow(pause), options};
  shared_result r;
  for (auto& b : run) {
    auto [number] = b.columns();
    for (std::size_t i = 0; i < b.size(); ++i) r.sum += (number[i] + 1L) * static_cast<long>(b.step() + 1);
  }
  if (storage) {
    r.feeder = storage->statistics().at(0);
    r.fed_rows = r.feeder.rows;
    r.report = mr::text_report(mr::report_of(run));
  }
  return r;
}

}   // namespace

TEST_CASE("answers with status 429 halve the share of a trainer, and other answers restore it slowly") {
  mr::detail::feeder_state f({});
  f.statistics.workers = 8;
  f.record_hello();
  CHECK(f.statistics.window == 32);
  CHECK(f.requests_to_fill() == 16);
  f.running = 5;
  f.record_busy(100, 200, 1'000);
  CHECK(f.requests_to_fill() == 8);
  CHECK(f.statistics.window == 16);
  CHECK(f.due_ns == 0);   // no pause: an answer will follow
  for (int i = 0; i < 10; ++i) f.record_busy(150, 300, 1'000);   // of the same moment
  CHECK(f.requests_to_fill() == 8);
  f.record_answer(0.01, 16, 1'000);
  CHECK(f.requests_to_fill() == 8);
  CHECK(f.statistics.window < 64);
  f.running = 0;
  f.record_busy(300, 400, 1'000);
  CHECK(f.due_ns == 1'400);
  CHECK(f.requests_to_fill() == 4);
  CHECK(f.statistics.busy == 12);
  int answers = 0;
  for (; f.share < 1 && answers < 1'000; ++answers) f.record_answer(0.01, 16, 1'000);
  CHECK(answers > 50);
  CHECK(f.share == 1);
}

TEST_CASE("a window is divided into few requests, unless a request cannot contain its rows") {
  mr::detail::feeder_state f({});
  f.statistics.workers = 64;
  f.request_rows = mr::detail::max_request_rows(150'528);
  CHECK(f.request_rows == 27);
  f.record_hello();
  CHECK(f.statistics.window == 256);
  CHECK(f.requests_to_fill() == 10);
  f.request_rows = mr::detail::max_request_rows(4);
  CHECK(f.requests_to_fill() == 8);
  f.running = 9;
  CHECK(f.accepts_request());
  f.running = 10;
  CHECK(!f.accepts_request());
  f.request_rows = mr::detail::max_request_rows(std::size_t{100} << 20);
  CHECK(f.request_rows == 1);
  CHECK(f.requests_to_fill() == 128);
  f.statistics.workers = 1;
  CHECK(f.requests_to_fill() == 2);
}

TEST_CASE("trainers whose shares differ converge to equal shares of a feeder") {
  mr::detail::feeder_state f[2]{mr::detail::feeder_state({}), mr::detail::feeder_state({})};
  for (auto& each : f) each.statistics.workers = 16;
  f[0].share = 1;
  f[1].share = 1.0 / 64;
  constexpr std::size_t capacity = 40;   // requests of both
  std::int64_t now_ns = 0;
  for (int round = 0; round < 2'000; ++round) {
    ++now_ns;
    const bool is_full = f[0].requests_to_fill() + f[1].requests_to_fill() > capacity;
    for (auto& each : f) {
      each.running = 1;
      if (is_full) each.record_busy(now_ns, now_ns, 0);
      else for (std::size_t i = 0; i < each.requests_to_fill(); ++i) each.record_answer(0.01, 32, now_ns);
    }
  }
  CHECK(f[0].share / f[1].share > 0.8);
  CHECK(f[0].share / f[1].share < 1.25);
}

TEST_CASE("ranks that share a feeder are not paused, and none starves") {
  constexpr std::size_t workers = 4;
  for (const std::size_t ranks : {2, 4}) {
    CAPTURE(ranks);
    const std::chrono::milliseconds here{20}, there{2};
    const auto rows = feeder_rows::maker_of(shared_flow(there), {.world = mr::world{.size = ranks}}, workers);
    mr::detail::feeder_server server(*rows, {.listen = "127.0.0.1:0"}, workers);
    std::vector<shared_result> results(ranks);
    std::vector<std::thread> trainers;
    for (std::size_t r = 0; r < ranks; ++r)
      trainers.emplace_back([&, r] { results[r] = run_of_rank({.rank = r, .size = ranks}, server.address(), here); });
    for (std::thread& t : trainers) t.join();
    std::size_t all = 0;
    for (const shared_result& r : results) all += r.fed_rows;
    for (std::size_t r = 0; r < ranks; ++r) {
      const shared_result& got = results[r];
      CHECK(got.sum == run_of_rank({.rank = r, .size = ranks}, {}, std::chrono::milliseconds(0)).sum);
      CHECK(got.fed_rows * ranks * 2 > all);
      CHECK(got.feeder.workers <= workers);
      CHECK(got.feeder.busy * 10 <= got.feeder.requests);
      CHECK(got.feeder.failures == 0);
      CHECK(got.report.find("rows       feeder " + server.address() + " (127.0.0.1): ") != std::string::npos);
    }
    CHECK(all > 600);
  }
}
