// Sessions on the fake CUDA runtime: no wait, no late allocation, nothing leaked, in many orders of the device's work;
// and refusals at any call. Tests that a real GPU can pass as well are in tests/cuda.
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../cuda/fake/helpers.hpp"
#include "../../captured_stderr.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::size_t rows = 4, width = 3'000;   // three pages a batch, the last one incomplete

struct example {
  std::array<std::uint8_t, width> pixels;
};

example example_of(int n) {
  example e{};
  e.pixels.fill(static_cast<std::uint8_t>(n % 251));
  return e;
}

auto flow(int samples, mr::to_device_options where) {
  return mr::from(numbers(samples)) | mr::map(example_of) | mr::batch<&example::pixels>({.size = rows}) |
         mr::prefetch({.batches = 2}) | mr::to_device(std::move(where));
}

/// A training step's use of a batch: reads all of it, later, in the user's stream.
struct reading {
  const std::uint8_t* pixels;
  std::uint64_t batch;
  std::atomic<int>* wrong;
};

void launch_step(cudaStream_t stream, const mr::tensor_view<std::uint8_t, 2>& pixels, std::uint64_t batch,
                 std::atomic<int>& wrong) {
  const cudaError_t launched = cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const std::unique_ptr<reading> r(static_cast<reading*>(data));
        for (std::size_t i = 0; i < rows * width; ++i) {
          const auto expected = static_cast<std::uint8_t>((r->batch * rows + i / width) % 251);
          if (r->pixels[i] != expected) {
            ++*r->wrong;
            return;
          }
        }
      },
      new reading{pixels.data, batch, &wrong});
  REQUIRE(launched == cudaSuccess);
}

/// The number of seeds is MILLRACE_SEEDS, starting with MILLRACE_FIRST_SEED.
std::vector<std::uint64_t> seeds() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  std::vector<std::uint64_t> all(number("MILLRACE_SEEDS", 100));
  std::iota(all.begin(), all.end(), number("MILLRACE_FIRST_SEED", 1));
  return all;
}

}  // namespace

TEST_CASE("whatever the order of the device's work, every step reads its own batch; nothing waits, leaks or is late") {
  for (const std::uint64_t seed : seeds()) {
    CAPTURE(seed);
    using fake_cuda::order;
    mr::rng random({.seed = seed});
    const order when = std::array{order::late, order::early, order::shuffled, order::shuffled}[random.below(4)];
    fake_cuda::reset({.seed = seed, .when = when, .background_threads = static_cast<int>(random.below(3))});
    const int threads = static_cast<int>(random.below(4));
    const std::size_t slots = 1 + random.below(4);
    const int batches = 12 + static_cast<int>(random.below(12));
    const bool fixed = random.chance(0.3);
    // The batch at which the loop ends early, with pending copies, or the end.
    const int last = random.chance(0.3) ? static_cast<int>(random.below(static_cast<std::uint64_t>(batches))) : batches;
    std::atomic<int> wrong{0};
    cudaStream_t step = nullptr;
    const bool own_stream = random.chance(0.7);
    if (own_stream)
      REQUIRE(cudaStreamCreateWithFlags(&step, random.chance(0.5) ? cudaStreamNonBlocking : cudaStreamDefault) ==
              cudaSuccess);
    {
      mr::session run{flow(batches * static_cast<int>(rows),
                           {.device = mr::cuda_device(0), .stream = step, .slots = slots, .fixed_slots = fixed}),
                      quiet(threads)};
      std::vector<mr::batch_of<&example::pixels>> leases;
      const std::uint64_t allocations = fake_cuda::calls("cudaMalloc") + fake_cuda::calls("cudaHostRegister") +
                                        fake_cuda::calls("cudaEventCreateWithFlags") +
                                        fake_cuda::calls("cudaStreamCreateWithFlags");
      int delivered = 0;
      while (delivered < last) {
        // Without workers the trainer itself copies and waits for copies.
        std::optional<fake_cuda::no_waiting_here> guard;
        if (threads > 0) guard.emplace();
        auto b = run.next();
        if (!b) break;
        REQUIRE(b.step() == static_cast<std::uint64_t>(delivered++));
        launch_step(step, b.get<&example::pixels>(), b.step(), wrong);
        if (!fixed && random.chance(0.3)) leases.push_back(std::move(b));
        else b.release();
        if (leases.size() >= slots) leases.clear();
      }
      REQUIRE(delivered == last);
      CHECK(fake_cuda::calls("cudaMalloc") + fake_cuda::calls("cudaHostRegister") +
                fake_cuda::calls("cudaEventCreateWithFlags") + fake_cuda::calls("cudaStreamCreateWithFlags") ==
            allocations);
    }
    REQUIRE(cudaStreamSynchronize(step) == cudaSuccess);
    if (own_stream) REQUIRE(cudaStreamDestroy(step) == cudaSuccess);
    REQUIRE(wrong == 0);
    REQUIRE(fake_cuda::violations() == std::vector<std::string>{});
    REQUIRE(fake_cuda::live() == fake_cuda::handles{});
  }
}

TEST_CASE("in a program with per-thread default streams, a batch may still be released on another thread") {
  using fake_cuda::order;
  for (const order when : {order::late, order::early, order::shuffled}) {
    fake_cuda::reset({.when = when, .null_per_thread = true});
    std::atomic<int> wrong{0};
    {
      mr::session run{flow(80, {.device = mr::cuda_device(0), .slots = 2}), quiet(2)};
      while (auto b = run.next()) {
        launch_step(nullptr, b.get<&example::pixels>(), b.step(), wrong);
        std::thread([&] { b.release(); }).join();
      }
    }
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(wrong == 0);
  }
}

TEST_CASE("full queues delay calls, but no call waits for another one, in any order of the device's work") {
  using fake_cuda::order;
  for (const std::size_t depth : {1U, 2U, 5U})
    for (const order when : {order::late, order::shuffled})
      for (const int background : {0, 2})
        for (const int threads : {0, 2}) {
          CAPTURE(depth);
          CAPTURE(background);
          CAPTURE(threads);
          fake_cuda::reset({.when = when, .background_threads = background, .queue_depth = depth});
          std::atomic<int> wrong{0};
          {
            const fake_cuda_test::a_stream step, other;
            mr::session run{flow(80, {.device = mr::cuda_device(0), .stream = step.handle, .slots = 2}),
                            quiet(threads)};
            int batches = 0;
            while (auto b = run.next()) {
              b.also_used_on(other.handle);
              launch_step(step, b.get<&example::pixels>(), b.step(), wrong);
              launch_step(other, b.get<&example::pixels>(), b.step(), wrong);
              ++batches;
            }
            CHECK(batches == 20);
            fake_cuda_test::ok(cudaDeviceSynchronize());
            CHECK(run.statistics().device_gap_ns.has_value());
          }
          CHECK(wrong == 0);
          CHECK(fake_cuda::live() == fake_cuda::handles{});
          CHECK(fake_cuda::violations() == std::vector<std::string>{});
        }
}

TEST_CASE("the legacy stream has two events per batch, and the time without a batch is not measured there") {
  for (const bool own : {false, true}) {
    CAPTURE(own);
    fake_cuda::reset();
    std::optional<fake_cuda_test::a_stream> step;
    if (own) step.emplace();
    mr::session run{flow(80, {.device = mr::cuda_device(0), .stream = own ? step->handle : cudaStream_t{}}), quiet(2)};
    while (auto b = run.next()) b.release();
    // 20 copies and 20 releases; in its own stream, also the end of each batch and the start of the next one.
    CHECK(fake_cuda::calls("cudaEventRecord") == (own ? 20 + 20 + 1 + 20 + 19 : 20 + 20));
    CHECK(run.statistics().device_gap_ns.has_value() == own);
    CHECK(fake_cuda::violations() == std::vector<std::string>{});
  }
}

TEST_CASE("without pinned memory, pageable memory is used, and one warning and the device's name report it") {
  fake_cuda::reset({.pinned_bytes = 20'000});
  std::atomic<int> wrong{0};
  mr::session run{flow(80, {.device = mr::cuda_device(0)}), quiet(2)};
  CHECK(run.description().find("with pageable host slots") != std::string::npos);
  int delivered = 0;
  for (auto& b : run) {
    launch_step(nullptr, b.get<&example::pixels>(), b.step(), wrong);
    ++delivered;
  }
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(delivered == 20);
  CHECK(wrong == 0);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device memory that cannot be allocated is an error at the start, and nothing leaks") {
  fake_cuda::reset({.device_bytes = 20'000});
  const auto start = [] { mr::session run{flow(80, {.device = mr::cuda_device(0), .slots = 3}), quiet(2)}; };
  CHECK_THROWS_WITH_AS(start(), doctest::Contains("cudaMalloc failed: cudaErrorMemoryAllocation"), mr::io_error);
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("each refused call, from first to last, is an error that names it; nothing leaks or hangs") {
  const std::vector<std::string> functions = {
      "cudaGetDeviceCount", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cudaGetDeviceProperties",
      "cudaStreamCreateWithFlags", "cudaStreamWaitEvent", "cudaStreamIsCapturing", "cudaEventCreateWithFlags",
      "cudaEventRecord", "cudaEventSynchronize", "cudaHostAlloc", "cudaMalloc", "cudaMemcpyAsync"};
  // If registering memory fails, cudaHostAlloc() is called instead, here always.
  for (const std::string& function : functions)
    for (const int threads : {0, 2}) {
      CAPTURE(function);
      CAPTURE(threads);
      int failed = 0;
      for (std::uint64_t nth = 1; nth < 500; ++nth) {
        fake_cuda::reset({.seed = nth, .host_page_tables = function == "cudaHostAlloc"});
        fake_cuda::fail(function, nth, cudaErrorIllegalState);
        std::string message;
        std::uint64_t calls_before_last = 0;   // when the last batch was delivered
        try {
          mr::session run{flow(40, {.device = mr::cuda_device(0), .slots = 2}), quiet(threads)};
          for (auto& b : run) {
            REQUIRE(b.size() == rows);
            calls_before_last = fake_cuda::calls(function);
          }
        } catch (const mr::error& e) {
          message = e.what();
        }
        REQUIRE(fake_cuda::live() == fake_cuda::handles{});
        REQUIRE(fake_cuda::violations() == std::vector<std::string>{});
        REQUIRE(cudaGetLastError() == cudaSuccess);
        if (message.empty()) {
          // Not reached, or only after the last batch: no caller is left to report it to.
          if (nth > fake_cuda::calls(function)) break;
          // A stager may see it while the last batch is delivered. The measurement of gaps ignores errors.
          if (threads == 0 && function != "cuCtxPushCurrent") REQUIRE(calls_before_last < nth);
          continue;
        }
        ++failed;
        CAPTURE(message);
        REQUIRE(message.find(function + " failed: cudaErrorIllegalState") != std::string::npos);
      }
      CHECK(failed > 0);
    }
}

TEST_CASE("a device that breaks down in the middle is the error of a batch, and the session can be destroyed") {
  for (const int batch : {0, 3, 9}) {
    fake_cuda::reset({.background_threads = 1});
    std::uint64_t delivered = 0;
    {
      mr::session run{flow(4'000, {.device = mr::cuda_device(0)}), quiet(2)};
      CHECK_THROWS_WITH_AS(
          for (;;) {
            auto b = run.next();
            ++delivered;
            if (b.step() == static_cast<std::uint64_t>(batch)) fake_cuda::break_device(cudaErrorIllegalAddress);
          },
          doctest::Contains("cudaErrorIllegalAddress"), mr::io_error);
      CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("cudaErrorIllegalAddress"), mr::setup_error);
    }
    CHECK(delivered < 1'000);
    CHECK(fake_cuda::live() == fake_cuda::handles{});
  }
}

TEST_CASE("a session that outlives the runtime is destroyed silently") {
  fake_cuda::reset();
  std::optional<decltype(mr::session(flow(0, {.device = mr::host_device()})))> run;
  run.emplace(flow(400, {.device = mr::cuda_device(0)}), quiet(2));
  auto b = run->next();
  fake_cuda::unload();
  run.reset();
  b.release();
}

TEST_CASE("without a GPU or a driver the best device is the host, without a message") {
  using world = fake_cuda::options;
  for (const world& w : {world{.devices = 0}, world{.driver_version = 0}}) {
    fake_cuda::reset(w);
    CHECK(captured_stderr([] { CHECK(mr::best_device().name() == "host"); }) == "");
    CHECK_THROWS_WITH_AS(mr::cuda_device(0), doctest::Contains("this process sees 0 GPUs"), mr::setup_error);
    int sum = 0;
    mr::session run{flow(40, {}), quiet(1)};
    for (auto& b : run) sum += b.get<&example::pixels>().host()[0];
    CHECK(sum > 0);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}

TEST_CASE("a driver that fails is an error with its remedy, and never a run on the host") {
  struct failure {
    cudaError_t why;
    const char* remedy;
  };
  for (const auto& [why, remedy] : {
           failure{cudaErrorSystemNotReady, "fabricmanager"}, failure{cudaErrorSystemDriverMismatch, "reboot"},
           failure{cudaErrorCompatNotSupportedOnDevice, "cuda-compat"},
           failure{cudaErrorDevicesUnavailable, "compute mode"},
           failure{cudaErrorInsufficientDriver, "update the driver"},
           failure{cudaErrorInitializationError, "fork()"}, failure{cudaErrorUnknown, "start the process again"}}) {
    for (const auto call : {+[] { mr::best_device(); }, +[] { mr::cuda_device(0); }}) {
      fake_cuda::reset();
      fake_cuda::fail("cudaGetDeviceCount", 1, why);
      std::string message, hint;
      try {
        call();
      } catch (const mr::io_error& e) {
        message = e.message(), hint = e.hint();
      }
      CHECK(message.find("cudaGetDeviceCount failed: " + std::string(cudaGetErrorName(why))) != std::string::npos);
      CHECK(hint.find(remedy) != std::string::npos);
      CHECK(cudaGetLastError() == cudaSuccess);
    }
    fake_cuda::fail("cudaGetDeviceCount", 1, why);
    const std::string text = captured_stderr([] { CHECK(mr::cuda_device_count() == 0); });
    CHECK(text.find("no GPU is used: ") != std::string::npos);
  }
  fake_cuda::reset({.driver_version = 11'000});
  CHECK_THROWS_AS(mr::best_device(), mr::io_error);
}

TEST_CASE("the failures of kernels and of memory have their own remedies") {
  using mr::detail::cuda_hint;
  const auto mentions = [](cudaError_t code, const char* words) {
    return cuda_hint(code).find(words) != std::string::npos;
  };
  CHECK(mentions(cudaErrorNoKernelImageForDevice, "-arch=native"));
  CHECK(mentions(cudaErrorUnsupportedPtxVersion, "-arch=native"));
  CHECK(mentions(cudaErrorECCUncorrectable, "checkpoint"));
  CHECK(mentions(cudaErrorMemoryAllocation, "allocator of a framework"));
}

TEST_CASE("a flow without to_device stays on the host, with or without a GPU, and calls no CUDA function") {
  fake_cuda::reset();
  mr::session run{mr::from(numbers(40)) | mr::map(example_of) | mr::batch<&example::pixels>({.size = rows}), quiet(1)};
  CHECK(run.next().get<&example::pixels>().host()[0] == 0);
  CHECK(fake_cuda::calls("cudaGetDeviceCount") == 0);
}
