#include "../../kernels_on_host.hpp"

#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>

namespace mr = millrace;

namespace {

constexpr std::array orders = {warp_order::together, warp_order::ascending, warp_order::descending};

struct sum {
  double value = 0;
  void merge(const sum& other) noexcept { value += other.value; }
};

/// Adds up `rounds` rows of numbers, one for each thread, and counts the threads of all blocks.
template <unsigned Threads>
struct sums_of_rows {
  static constexpr unsigned threads = Threads;

  const double* values;
  double* to;   // one for each row of each block
  unsigned rounds;
  std::uint64_t* count;

  void operator()(const auto& team) const {
    for (unsigned r = 0; r < rounds; ++r) {
      const sum all = team.reduce([&](unsigned t) { return sum{values[r * threads + t]}; });
      team.once([&] { to[team.block() * rounds + r] = all.value; });
    }
    team.each([&](unsigned) { team.add(*count, 1); });
  }
};

/// The effect of __shfl_down_sync on 32 lanes, all at once, and then of the first thread on the warps.
double sum_in_order(const double* values, unsigned threads) {
  double expected = 0;
  for (unsigned w = 0; w < threads / 32; ++w) {
    std::array<double, 32> lanes{};
    std::copy_n(values + w * 32, 32, lanes.begin());
    for (unsigned step = 16; step > 0; step /= 2) {
      auto next = lanes;
      for (unsigned l = 0; l + step < 32; ++l) next[l] = lanes[l] + lanes[l + step];
      lanes = next;
    }
    expected = w == 0 ? lanes[0] : expected + lanes[0];
  }
  return expected;
}

/// Runs the function in 64 threads. Returns the last complaint about threads that wait for each other.
std::string complaint_about(const std::function<void(unsigned, block_of_threads&)>& body) {
  block_of_threads block(64, warp_order::together);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::string complaint;
  for (unsigned t = 0; t < 64; ++t)
    threads.emplace_back([&, t] {
      try {
        body(t, block);
      } catch (const broken_kernel& e) {
        const std::lock_guard lock(mutex);
        complaint = e.what();
      }
      block.end(t);
    });
  for (auto& thread : threads) thread.join();
  return complaint;
}

struct fails {
  static constexpr unsigned threads = 32;
  void operator()(const auto& team) const {
    team.once([] { throw std::runtime_error("failed"); });
    team.reduce([](unsigned) { return sum{}; });
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a reduction has the same bits in loops and in threads, in every order of the warps", body,
                   sums_of_rows<32>, sums_of_rows<64>, sums_of_rows<128>) {
  constexpr unsigned threads = body::threads, rounds = 2, blocks = 2;
  mr::rng d({.seed = 9});
  std::vector<double> values(rounds * threads), expected;
  for (auto& v : values) v = d.uniform(-1, 1) * std::pow(10.0, static_cast<double>(d.between(-12, 12)));
  for (unsigned r = 0; r < blocks * rounds; ++r)
    expected.push_back(sum_in_order(values.data() + r % rounds * threads, threads));

  std::vector<double> sums(blocks * rounds);
  std::uint64_t count = 0;
  const body kernel{values.data(), sums.data(), rounds, &count};
  run_in_loops(kernel, blocks);
  CHECK(sums == expected);
  CHECK(count == blocks * threads);
  for (const warp_order order : orders) {
    CAPTURE(static_cast<int>(order));
    sums.assign(sums.size(), -1);
    count = 0;
    run_in_threads(kernel, blocks, order);
    CHECK(sums == expected);
    CHECK(count == blocks * threads);
  }
}

TEST_CASE("threads that wait for each other forever are reported") {
  const std::string barrier = "waits at a barrier that another did not reach";
  const std::string exchange = "which has ended or waits at a barrier";
  const auto waits = [](unsigned t, block_of_threads& block) { block.synchronize(t); };
  const auto exchanges = [](unsigned t, block_of_threads& block) { block.from_lane_above(t, t, 1); };
  CHECK(complaint_about(waits) == "");
  CHECK(complaint_about(exchanges) == "");
  CHECK(complaint_about([&](unsigned t, auto& block) { if (t != 40) waits(t, block); }).ends_with(barrier));
  CHECK(complaint_about([&](unsigned t, auto& block) { if (t != 40) exchanges(t, block); }).ends_with(exchange));
  CHECK(complaint_about([&](unsigned t, auto& block) {
    t == 40 ? waits(t, block) : exchanges(t, block);
  }).find("thread ") == 0);
}

TEST_CASE("a thread's exception leaves the kernel") {
  CHECK_THROWS(run_in_threads(fails{}, 3));
}
