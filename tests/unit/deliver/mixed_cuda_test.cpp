// Mixed rows on the fake CUDA runtime: the bits of deferred rows after the kernel equal those of rows mixed on the
// host.
#include "../../kernels_on_host.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/device/mix_rows.cuh>
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace mr = millrace;

namespace {

struct example {
  mr::tensor<mr::f16, 3> pixels;   // [3, 9, 11]
  std::int64_t label;
};
example random_picture(int n, mr::rng& random) {
  if (n % 11 == 5) throw mr::data_error("the number " + std::to_string(n) + " is bad", "Take another one");
  example e{mr::tensor<mr::f16, 3>({3, 9, 11}), n % 10};
  for (mr::f16& v : e.pixels.span()) v = mr::detail::to_f16(static_cast<float>(random.uniform(-2, 2)));
  return e;
}

/// Everything that a run delivers, as bytes.
struct bytes_of_run {
  std::vector<std::uint16_t> pixels;
  std::vector<std::int64_t> labels;
  std::vector<float> lambda, dense;
};

bytes_of_run run_on(const mr::device& where, bool deferred) {
  auto options = quiet(2, 2);
  options.on_damage = {.policy = mr::damage::replace, .at_most_share = 1};
  options.lanes = 4;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  bytes_of_run all;
  float* dense_memory = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&dense_memory), 16 * 10 * sizeof(float)) == cudaSuccess);
  {
    mr::session run{mr::from(numbers(200), {.seed = 3}) | mr::map(random_picture) |
                        mr::batch<&example::pixels, &example::label>({.size = 16}) |
                        mr::mix_rows<&example::pixels, &example::label>(
                            {.mixup_alpha = 0.8, .cutmix_alpha = 1, .deferred = deferred}) |
                        mr::to_device({.device = where, .stream = stream}),
                    options};
    for (auto& b : run) {
      const auto numbers = b.get<&example::pixels>();
      std::vector<float> dense(b.size() * 10);
      if (deferred) {
        mr::mix_rows(numbers, b.row_mixes(), b.stream());
        const mr::tensor_view<float, 2> to{.data = dense_memory, .shape = {b.size(), 10},
                                           .memory = mr::memory_kind::device};
        mr::dense_labels(b.mixed_labels(), to, {.smoothing = 0.1}, b.stream());
        const auto rows = b.to_host(to);
        dense.assign(rows.span().begin(), rows.span().end());
      } else {
        mr::dense_labels(b.mixed_labels(), {.data = dense.data(), .shape = {b.size(), 10}}, {.smoothing = 0.1});
      }
      const auto pixels = b.to_host(numbers);
      for (const mr::f16 v : pixels.span()) all.pixels.push_back(v.bits);
      for (const auto labels = b.to_host(b.label_b()); const auto v : labels.span()) all.labels.push_back(v);
      for (const auto lambda = b.to_host(b.lambda()); const auto v : lambda.span()) all.lambda.push_back(v);
      all.dense.insert(all.dense.end(), dense.begin(), dense.end());
    }
  }
  REQUIRE(cudaFree(dense_memory) == cudaSuccess);
  cudaStreamDestroy(stream);
  return all;
}

}  // namespace

TEST_CASE("rows mixed by the kernel have the bits of rows mixed by the workers, and copies of replaced rows too") {
  const bytes_of_run on_host = run_on(mr::host_device(), false), on_gpu = run_on(mr::cuda_device(0), true);
  REQUIRE(on_host.lambda.size() == 2 * 192);
  CHECK(on_gpu.lambda == on_host.lambda);
  CHECK(on_gpu.labels == on_host.labels);
  CHECK(on_gpu.pixels == on_host.pixels);
  CHECK(on_gpu.dense == on_host.dense);
  CHECK(std::count(on_host.lambda.begin(), on_host.lambda.end(), 1.0F) < 100);
}
