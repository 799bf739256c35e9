#include "../../kernels_on_host.hpp"
#include "mixed_batches.hpp"

#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

namespace mr = millrace;
using namespace mixed_batches;

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

namespace {

constexpr auto on_device = mr::memory_kind::device;

struct mix_stream {
  cudaStream_t handle = nullptr;

  mix_stream() { REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess); }
  mix_stream(const mix_stream&) = delete;
  mix_stream& operator=(const mix_stream&) = delete;
  ~mix_stream() { cudaStreamDestroy(handle); }
  void wait() const { REQUIRE(cudaStreamSynchronize(handle) == cudaSuccess); }
};

/// Mixes a batch by the kernel, `shift` elements past an aligned address, with guards around it. The memory ends with
/// the guard, so that AddressSanitizer detects accesses beyond it.
template <class T>
void check_kernel(const batch<T>& b, std::size_t shift, const mix_stream& stream) {
  constexpr std::size_t guard = 64 / sizeof(T);
  std::vector<T> buffer(guard + shift + b.rows.size() + guard);
  std::memset(static_cast<void*>(buffer.data()), 0x5a, buffer.size() * sizeof(T));
  auto expected = buffer;
  std::copy(b.rows.begin(), b.rows.end(), buffer.begin() + static_cast<long>(guard + shift));
  std::copy(b.expected.begin(), b.expected.end(), expected.begin() + static_cast<long>(guard + shift));
  const mr::tensor_view<T, 4> rows{.data = buffer.data() + guard + shift, .shape = b.shape(), .memory = on_device};
  const mr::tensor_view<const mr::row_mix, 1> mixes{.data = b.mixes.data(), .shape = {b.mixes.size()},
                                                    .memory = on_device};
  mr::mix_rows(rows, mixes, stream.handle, b.layout());
  stream.wait();
  REQUIRE(std::memcmp(buffer.data(), expected.data(), buffer.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("the kernel writes the bits of the host's loop and touches nothing else", T, std::uint8_t, float,
                   mr::f16, mr::bf16) {
  const mix_stream stream;
  mr::rng random({.seed = 21});
  for (int round = 0; round < 150; ++round) {
    const batch<T> b(random.below(14), {1 + random.below(9), 1 + random.below(17), 1 + random.below(4)},
                     random.chance(0.5), random);
    check_kernel(b, random.chance(0.5) ? 0 : random.below(9), stream);
  }
  for (const bool planar : {false, true}) {   // many blocks of a row, all units aligned
    const batch<T> b(5, {64, 80, 3}, planar, random);
    check_kernel(b, 0, stream);
  }
}

TEST_CASE("dense labels of the kernel have the bits of the host's") {
  const mix_stream stream;
  mr::rng random({.seed = 22});
  for (const std::size_t classes : {1U, 2U, 10U, 1'000U})
    for (const double smoothing : {0.0, 0.1}) {
      const labels l(33, classes, random);
      mr::tensor<float, 2> expected({33, classes}), actual({33, classes});
      mr::dense_labels(l.views(), expected.view(), {.smoothing = smoothing});
      mr::tensor_view<float, 2> to = actual.view();
      to.memory = on_device;
      mr::dense_labels(l.views(on_device), to, {.smoothing = smoothing}, stream.handle);
      stream.wait();
      CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("the kernel's threads mix rows and write dense labels without a race") {
  const mix_stream stream;
  mr::rng random({.seed = 25});
  const kernels_run_in_threads guard(warp_order::together);
  check_kernel(batch<mr::bf16>(5, {9, 16, 3}, true, random), 0, stream);
  check_kernel(batch<std::uint8_t>(6, {5, 7, 3}, false, random), 3, stream);
  const labels l(33, 10, random);
  mr::tensor<float, 2> expected({33, 10}), actual({33, 10});
  mr::dense_labels(l.views(), expected.view(), {.smoothing = 0.1});
  mr::tensor_view<float, 2> to = actual.view();
  to.memory = on_device;
  mr::dense_labels(l.views(on_device), to, {.smoothing = 0.1}, stream.handle);
  stream.wait();
  CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)) == 0);
}

TEST_CASE("a label that is not a class gets no weight on a device") {
  const mix_stream stream;
  mr::rng random({.seed = 23});
  labels l(2, 4, random);
  l.a = {-1, 2};
  l.b = {1, 9};
  l.lambda = {0.25F, 0.75F};
  std::vector<float> dense(8, -1);
  mr::dense_labels(l.views(on_device), {.data = dense.data(), .shape = {2, 4}, .memory = on_device}, {}, stream.handle);
  stream.wait();
  CHECK(dense == std::vector<float>{0, 0.75F, 0, 0, 0, 0, 0.75F, 0});
}

TEST_CASE("memory of the host and shapes that differ are refused") {
  const mix_stream stream;
  mr::rng random({.seed = 24});
  batch<float> b(4, {2, 2, 3}, true, random);
  mr::tensor_view<float, 4> rows{.data = b.rows.data(), .shape = b.shape(), .memory = on_device, .name = "pixels"};
  mr::tensor_view<const mr::row_mix, 1> mixes{.data = b.mixes.data(), .shape = {4}, .memory = on_device};
  auto on_host = rows;
  on_host.memory = mr::memory_kind::host;
  CHECK_THROWS_WITH_AS(mr::mix_rows(on_host, mixes, stream.handle),
                       doctest::Contains("pixels is in host memory, which the kernel cannot read"), mr::setup_error);
  auto of_host = mixes;
  of_host.memory = mr::memory_kind::host;
  CHECK_THROWS_AS(mr::mix_rows(rows, of_host, stream.handle), mr::setup_error);
  mixes.shape[0] = 3;
  CHECK_THROWS_AS(mr::mix_rows(rows, mixes, stream.handle), mr::setup_error);
  const labels l(4, 3, random);
  mr::tensor<float, 2> dense({4, 3});
  CHECK_THROWS_AS(mr::dense_labels(l.views(on_device), dense.view(), {}, stream.handle), mr::setup_error);
  CHECK_THROWS_AS(mr::dense_labels(l.views(), {.data = dense.data(), .shape = {4, 3}, .memory = on_device}, {},
                                   stream.handle), mr::setup_error);
}
