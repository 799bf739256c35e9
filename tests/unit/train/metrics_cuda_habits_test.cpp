// Metrics on a device, in programs with unusual habits.
#include "device_fixtures.hpp"

#include <doctest/doctest.h>

#include <thread>

namespace mr = millrace;
using fake_cuda_test::a_stream;

TEST_CASE("adds on several threads in the empty stream, in a program with per-thread default streams") {
  fake_cuda::reset({.when = fake_cuda::order::late, .null_per_thread = true});
  {
    const column<float> value({1, 2, 4, 8});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    for (std::size_t step = 0; step < 4; ++step) {
      auto one = value.view();
      one.data += step;
      one.shape = {1};
      std::thread([&] { loss.add(one); }).join();
      m.maybe_log(step, f.out);
    }
    m.finish(f.out);
    const auto& rows = f.rows();
    REQUIRE(rows.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(rows[i].find("loss").value_or(-1) == 1 << i);
  }
}

TEST_CASE("an error that the trainer has not yet checked is still there after maybe_log(), and rows are still "
          "delivered") {
  fake_cuda::reset({.when = fake_cuda::order::late, .polls = 3});
  {
    const a_stream s;
    const column<float> value({5});
    logged f;
    mr::metrics m({.every = 1, .device = mr::cuda_metric_sums({.slots = 64})});
    auto loss = m.mean("loss");
    std::uint64_t step = 0, rows = 0;
    const auto train_step = [&] {
      loss.add(value.view(), {.stream = s.handle});
      rows += m.maybe_log(step++, f.out);
    };
    for (int i = 0; i < 8; ++i) {
      train_step();
      CHECK(cudaSetDevice(1'000) == cudaErrorInvalidDevice);
      train_step();
      CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    }
    CHECK(cudaSetDevice(1'000) == cudaErrorInvalidDevice);   // of a trainer that never checks
    rows = 0;
    for (int i = 0; i < 20; ++i) train_step();
    CHECK(rows > 0);
    cudaGetLastError();
    m.finish(f.out);
  }
}

TEST_CASE("metrics that are destroyed while adds are pending wait for the stream of the last add") {
  using fake_cuda::order;
  for (const order when : {order::late, order::shuffled})
    for (const bool captured : {false, true}) {
      fake_cuda::reset({.when = when});
      {
        const a_stream s;
        const column<float> value({5});
        cudaGraph_t graph = nullptr;
        {
          mr::metrics m({.device = mr::cuda_metric_sums()});
          m.mean("loss").add(value.view(), {.stream = s.handle});
          if (captured) {
            fake_cuda::run_all();
            fake_cuda_test::ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
          }
        }
        if (captured) fake_cuda_test::ok(cudaStreamEndCapture(s, &graph));   // the capture is still valid
        if (graph) cudaGraphDestroy(graph);
      }
      CHECK(fake_cuda::violations() == std::vector<std::string>{});
      CHECK(fake_cuda::live() == fake_cuda::handles{});
    }
}

TEST_CASE("sums without a GPU's number are on the current GPU, and views on another GPU are rejected by name") {
  fake_cuda::reset({.devices = 2});
  {
    fake_cuda_test::ok(cudaSetDevice(1));
    const column<float> value({4, 5});
    const column<std::int32_t> label({0});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(value.view());   // in the legacy stream of GPU 1
    CHECK(m.read_now().find("loss") == 4.5);

    mr::metrics elsewhere({.device = mr::cuda_metric_sums({.device = 0})});
    CHECK_THROWS_WITH_AS(elsewhere.mean("loss").add(value.view()), doctest::Contains("is in the memory of GPU 1"),
                         mr::setup_error);
    CHECK_THROWS_WITH_AS(elsewhere.accuracy("top1").add(value.rows(1), label.view()),
                         doctest::Contains("would run on GPU 0"), mr::setup_error);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::reset();
}

TEST_CASE("sums in the context of the trainer, whose memory the runtime does not describe") {
  fake_cuda::reset();
  void* const own = fake_cuda::create_context(0);
  {
    mr::metrics in_primary({.device = mr::cuda_metric_sums()});
    auto rejected = in_primary.mean("loss");
    fake_cuda::set_current_context(own);
    const column<float> value({4, 5});
    mr::metrics m({.device = mr::cuda_metric_sums()});
    auto loss = m.mean("loss");
    loss.add(value.view());   // in the legacy stream of this context
    CHECK(m.read_now().find("loss") == 4.5);
    CHECK(fake_cuda::current_context() == own);
    CHECK_THROWS_WITH_AS(rejected.add(value.view()), doctest::Contains("a default stream of another context"),
                         mr::setup_error);
  }
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  fake_cuda::set_current_context(nullptr);
  fake_cuda::reset();
}
