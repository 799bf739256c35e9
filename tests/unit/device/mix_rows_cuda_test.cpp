#include "../../kernels_on_host.hpp"
#include "mixed_batches.hpp"

#include <millrace/device/mix_rows.cuh>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>

namespace mr = millrace;
using namespace mixed_batches;

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
