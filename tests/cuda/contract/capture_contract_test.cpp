// Sessions and stream capture: which captures stay valid, and replayed steps. Compiled with the fake CUDA runtime and
// the real one.
#include "recorded_batches.hpp"

#include <thread>
#include <vector>

using namespace contract;

TEST_CASE("session: a request for a batch during a capture is refused; the capture and the session continue") {
  contract::start();
  const contract::stream step;
  batch_recorder recorder(20);
  mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
  {
    auto b = run.next();
    recorder.step(b, step);
  }
  contract::pause();
  ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("being captured"), mr::setup_error);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(step, &graph));
  cudaGraphDestroy(graph);
  while (auto b = run.next()) recorder.step(b, step);
  step.synchronize();
  CHECK(recorder.batches() == 20);
  CHECK(recorder.right());
}

TEST_CASE("session: a batch released during a capture is reported with the next one; the capture continues") {
  contract::start();
  const contract::stream step, blocking(cudaStreamDefault);
  // The legacy stream would join the capture of a blocking stream.
  for (const cudaStream_t used : {static_cast<cudaStream_t>(step), cudaStream_t{nullptr}}) {
    mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = used, .slots = 2}), quiet(2)};
    auto b = run.next();
    const cudaStream_t captured = used ? step : blocking;
    ok(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
    b.release();
    contract::pause();   // the stager would query the event
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(captured, &graph));
    ok(cudaGraphDestroy(graph));
    CHECK_THROWS_WITH_AS(run.next(), doctest::Contains("released while its stream"), mr::setup_error);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
}

TEST_CASE("session: calls of the library's threads do not invalidate a capture on the user's thread") {
  contract::start();
  const contract::stream step, captured;
  batch_recorder recorder(40);
  mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step}), quiet(2)};
  for (int i = 0; i < 40; ++i) {
    // Batches are copied and host slots released during this capture.
    ok(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(captured, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    auto b = run.next();
    recorder.step(b, step);
  }
  step.synchronize();
  CHECK(recorder.right());
}

TEST_CASE("session: with fixed slots a step that was captured once for each slot replays on every batch") {
  contract::start();
  const contract::stream step;
  constexpr std::size_t pixel_bytes = rows * width;
  const auto copy = contract::make_pinned(40 * pixel_bytes);
  const auto model = contract::make_device(pixel_bytes);
  std::vector<cudaGraphExec_t> step_of_slot;
  {
    mr::session run{flow(320, {.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = true}),
                    quiet(2)};
    step_of_slot.resize(run.slots());
    for (auto& b : run) {
      auto& graph_step = step_of_slot[b.slot()];
      if (!graph_step) {
        cudaGraph_t graph = nullptr;
        ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeThreadLocal));
        ok(cudaMemcpyAsync(model.get(), b.get<&example::pixels>().data, pixel_bytes, cudaMemcpyDeviceToDevice, step));
        ok(cudaStreamEndCapture(step, &graph));
        ok(cudaGraphInstantiate(&graph_step, graph, 0));
        ok(cudaGraphDestroy(graph));
      }
      ok(cudaGraphLaunch(graph_step, step));
      ok(cudaMemcpyAsync(copy.get() + b.step() * pixel_bytes, model.get(), pixel_bytes, cudaMemcpyDeviceToHost, step));
    }
  }
  step.synchronize();
  for (auto s : step_of_slot) ok(cudaGraphExecDestroy(s));
  for (std::size_t i = 0; i < 320; ++i)
    REQUIRE(std::memcmp(copy.get() + i * width, example_of(static_cast<int>(i)).pixels.data(), width) == 0);
}
