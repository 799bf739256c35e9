// Sessions on one of several GPUs.
#include "../../cuda/fake/fake_cuda.hpp"
#include "../../cuda/fake/helpers.hpp"
#include "../run/quiet_sessions.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <optional>
#include <thread>

namespace mr = millrace;
using fake_cuda_test::ok;

namespace {

struct example {
  std::array<std::uint8_t, 100> pixels;
};

auto flow(mr::to_device_options where) {
  return mr::from(numbers(80)) | mr::map([](int n) {
           example e{};
           e.pixels.fill(static_cast<std::uint8_t>(n));
           return e;
         }) |
         mr::batch<&example::pixels>({.size = 4}) | mr::to_device(std::move(where));
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

TEST_CASE("a thread keeps its current GPU if the process uses it") {
  fake_cuda::reset({.devices = 3});
  ok(cudaSetDevice(2));
  const mr::device device = mr::cuda_device(1);
  int current = -1;
  ok(cudaGetDevice(&current));
  CHECK(current == 2);
  CHECK(fake_cuda::contexts() == std::vector<int>{1, 2});
  fake_cuda::reset();
}
