// Sessions on one of several GPUs.
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../cuda/fake/helpers.hpp"
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
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace mr = millrace;
using fake_cuda_test::ok;

namespace {

struct example {
  std::array<std::uint8_t, 100> pixels;
};

auto numbered() {
  return mr::from(numbers(80)) | mr::map([](int n) {
           example e{};
           e.pixels.fill(static_cast<std::uint8_t>(n));
           return e;
         }) |
         mr::batch<&example::pixels>({.size = 4});
}
auto flow(mr::to_device_options where) { return numbered() | mr::to_device(std::move(where)); }

// The example of examples/guide/gpu.md, which tests/contract/readme compares with these lines.
/// Trains on all GPUs of this process, with a thread, a stream and a session for each.
template <class Flow, class Step>
void train_on_gpus(std::size_t gpus, const Flow& flow, const Step& train_step) {
  std::vector<std::future<void>> loops;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu)
    loops.push_back(std::async(std::launch::async, [=] {
      cudaSetDevice(static_cast<int>(gpu));   // for your own calls and kernels
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      {
        const mr::world mine{.rank = gpu, .size = gpus, .local_rank = gpu, .local_size = gpus};
        mr::session run{flow | mr::to_device({.device = mr::cuda_device(static_cast<int>(gpu)), .stream = stream}),
                        {.epochs = 2, .world = mine}};
        for (auto& b : run) train_step(b, stream);
      }
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }));
  for (auto& loop : loops) loop.get();   // throws the error of its thread
}

}  // namespace

TEST_CASE("a rank opens its own GPU only, also on threads that never chose a GPU") {
  for (const int threads : {0, 2}) {
    CAPTURE(threads);
    fake_cuda::reset({.devices = 8});
    ::setenv("LOCAL_RANK", "7", 1);
    std::optional<mr::device> device(mr::best_device());
    ::unsetenv("LOCAL_RANK");
    CHECK(fake_cuda::contexts() == std::vector<int>{7});
    // The main thread never used CUDA before, nor did the threads that release batches, sessions and the device.
    std::thread([&] {
      std::optional run{mr::session(flow({.device = *device}), quiet(threads))};
      int batches = 0;
      while (auto b = run->next()) {
        ++batches;
        std::thread([&] { b.release(); }).join();
      }
      CHECK(batches == 20);
      static_cast<void>(run->statistics());   // reads the times of the device's events
      std::thread([&] { run.reset(); }).join();
    }).join();
    std::thread([&] { device.reset(); }).join();
    CHECK(fake_cuda::contexts() == std::vector<int>{7});
    CHECK(fake_cuda::live() == fake_cuda::handles{});
  }
}

TEST_CASE("a thread keeps its current GPU and its context, or has none as before") {
  fake_cuda::reset({.devices = 3});
  int current = -1;
  {
    ok(cudaSetDevice(2));
    void* const before = fake_cuda::current_context();
    const mr::device device = mr::cuda_device(1);
    ok(cudaGetDevice(&current));
    CHECK(current == 2);
    CHECK(fake_cuda::current_context() == before);
    CHECK(fake_cuda::contexts() == std::vector<int>{1, 2});
    std::thread([] {
      const mr::device elsewhere = mr::cuda_device(1);
      CHECK(fake_cuda::current_context() == nullptr);
    }).join();
    void* const own = fake_cuda::create_context(2);
    fake_cuda::set_current_context(own);
    mr::session run{flow({.device = device}), quiet(0)};
    while (auto b = run.next()) b.release();
    CHECK(fake_cuda::current_context() == own);   // and not the primary context of GPU 2
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::reset();
}

TEST_CASE("a session runs in the context of the trainer, for example one from cuCtxCreate()") {
  for (const int threads : {0, 2})
    for (const bool default_stream : {true, false}) {
      CAPTURE(threads);
      CAPTURE(default_stream);
      fake_cuda::reset({.devices = 2});
      void* const own = fake_cuda::create_context(1);
      {
        fake_cuda::set_current_context(own);
        std::optional<fake_cuda_test::a_stream> step;
        if (!default_stream) step.emplace();
        const cudaStream_t stream = default_stream ? nullptr : step->handle;
        std::optional run{mr::session(flow({.device = mr::cuda_device(1), .stream = stream}), quiet(threads))};
        int batches = 0;
        std::atomic<int> wrong{0};
        struct look {
          const std::uint8_t* first;
          int expected;
          std::atomic<int>* wrong;
        };
        while (auto b = run->next()) {
          ok(cudaLaunchHostFunc(
              stream,
              [](void* data) {
                const std::unique_ptr<look> l(static_cast<look*>(data));
                *l->wrong += *l->first != l->expected;
              },
              new look{b.get<&example::pixels>().data, 4 * batches++, &wrong}));
          std::thread([&] { b.release(); }).join();   // of a thread without a context
        }
        CHECK(batches == 20);
        ok(cudaStreamSynchronize(stream));
        CHECK(wrong == 0);
        std::thread([&] { run.reset(); }).join();
        CHECK(fake_cuda::current_context() == own);
      }
      CHECK(fake_cuda::contexts().empty());   // no primary context was opened
      CHECK(fake_cuda::live() == fake_cuda::handles{});
      CHECK(fake_cuda::violations() == std::vector<std::string>{});
      fake_cuda::set_current_context(nullptr);
    }
  fake_cuda::reset();
}

TEST_CASE("streams of another context of the same GPU are rejected at once") {
  fake_cuda::reset();
  {
    const mr::device device = mr::cuda_device(0);   // in the primary context
    void* const own = fake_cuda::create_context(0);
    fake_cuda::set_current_context(own);
    const fake_cuda_test::a_stream stream;
    const auto start = [&] { mr::session run{flow({.device = device, .stream = stream.handle}), quiet(2)}; };
    CHECK_THROWS_WITH_AS(start(), doctest::Contains("and its context"), mr::setup_error);
    for (const cudaStream_t of_caller : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread}) {
      mr::session run{flow({.device = device, .stream = of_caller}), quiet(2)};
      CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("was created in a different context"), mr::setup_error);
      fake_cuda::set_current_context(nullptr);
      CHECK(run.next().size() == 4);
      fake_cuda::set_current_context(own);
    }
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::set_current_context(nullptr);
  fake_cuda::reset();
}

TEST_CASE("a stream of another GPU is rejected at once, and the session continues") {
  fake_cuda::reset({.devices = 2});
  {
    const fake_cuda_test::a_stream on_0;
    ok(cudaSetDevice(1));
    const fake_cuda_test::a_stream on_1;
    ok(cudaSetDevice(0));
    const auto start = [&] { mr::session run{flow({.device = mr::cuda_device(0), .stream = on_1.handle}), quiet(2)}; };
    CHECK_THROWS_WITH_AS(start(), doctest::Contains("does not belong to cuda:0 (Fake GPU 0)"),
                         mr::setup_error);
    mr::session run{flow({.device = mr::cuda_device(0), .stream = on_0.handle}), quiet(2)};
    int batches = 0;
    for (auto& b : run) {
      CHECK_THROWS_WITH_AS(b.also_used_on(on_1.handle), doctest::Contains("does not belong to cuda:"), mr::setup_error);
      CHECK_FALSE(b.is_used_on(on_1.handle));
      CHECK_FALSE(b.is_used_on(cudaStreamPerThread));
      b.also_used_on(cudaStreamPerThread);
      CHECK(b.is_used_on(cudaStreamPerThread));
      CHECK(b.is_used_on(on_0.handle));
      ++batches;
    }
    CHECK(batches == 20);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::reset();
}

TEST_CASE("one process trains on two GPUs: each GPU receives its own share of the samples, in its own memory") {
  fake_cuda::reset({.devices = 2, .background_threads = 2});
  std::mutex mutex;
  std::vector<int> batches_of_gpu(2), times(80);
  train_on_gpus(2, numbered(), [&](auto& b, cudaStream_t stream) {
    const auto pixels = b.template get<&example::pixels>();
    std::vector<std::uint8_t> host(pixels.size());
    cudaPointerAttributes where{};
    const std::lock_guard lock(mutex);
    ok(cudaPointerGetAttributes(&where, pixels.data));
    ok(cudaMemcpyAsync(host.data(), pixels.data, host.size(), cudaMemcpyDeviceToHost, stream));
    ok(cudaStreamSynchronize(stream));
    ++batches_of_gpu.at(static_cast<std::size_t>(where.device));
    for (std::size_t row = 0; row < b.size(); ++row) ++times.at(host[row * 100]);
  });
  CHECK(batches_of_gpu == std::vector<int>{20, 20});
  CHECK(times == std::vector<int>(80, 2));
  CHECK(fake_cuda::contexts() == std::vector<int>{0, 1});
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::reset();
}

// Mixed rows on the fake CUDA runtime: the bits of deferred rows after the kernel equal those of rows mixed on the
// host.
namespace {

struct mixed_example {
  mr::tensor<mr::f16, 3> pixels;   // [3, 9, 11]
  std::int64_t label;
};
mixed_example random_picture(int n, mr::rng& random) {
  if (n % 11 == 5) throw mr::data_error("the number " + std::to_string(n) + " is bad", "Take another one");
  mixed_example e{mr::tensor<mr::f16, 3>({3, 9, 11}), n % 10};
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
                        mr::batch<&mixed_example::pixels, &mixed_example::label>({.size = 16}) |
                        mr::mix_rows<&mixed_example::pixels, &mixed_example::label>(
                            {.mixup_alpha = 0.8, .cutmix_alpha = 1, .deferred = deferred}) |
                        mr::to_device({.device = where, .stream = stream}),
                    options};
    for (auto& b : run) {
      const auto numbers = b.get<&mixed_example::pixels>();
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
