// Sessions on devices: several on one device, several devices, stream captures, and the calls of a step, which the
// linker counts: no call waits, and after the start no thread of the library creates or frees resources. Compiled with
// the fake CUDA runtime and the real one.
#include "recorded_batches.hpp"
#include "wrapped_calls.hpp"

#include <thread>
#include <vector>

using namespace contract;

TEST_CASE("session: two sessions share a device, batch by batch") {
  contract::start();
  const contract::stream train_step, valid_step;
  const auto device = mr::cuda_device(0);
  batch_recorder trained(20), validated(20);
  mr::session train{flow(160, {.device = device, .stream = train_step}), quiet(2)};
  mr::session valid{flow(160, {.device = device, .stream = valid_step}), quiet(1)};
  for (auto& b : train) {
    trained.step(b, train_step);
    auto v = valid.next();
    validated.step(v, valid_step);
  }
  train_step.synchronize();
  valid_step.synchronize();
  CHECK(trained.right());
  CHECK(validated.right());
}

TEST_CASE("session: two sessions on a device do not wait for each other's steps") {
  contract::start();
  const contract::stream train_step, valid_step;
  const auto device = mr::cuda_device(0);
  batch_recorder trained(20), validated(20);
  mr::session train{flow(160, {.device = device, .stream = train_step, .slots = 2}), quiet(2)};
  mr::session valid{flow(160, {.device = device, .stream = valid_step, .slots = 2}), quiet(1)};
  {
    const contract::stream_block block(valid_step);
    for (int i = 0; i < 2; ++i) {
      auto b = valid.next();   // released at once: the next copy into its slot waits for the step
      validated.step(b, valid_step);
    }
    contract::pause();
    for (auto& b : train) trained.step(b, train_step);
    train_step.synchronize();
    CHECK_FALSE(block.is_over());
  }
  for (auto& b : valid) validated.step(b, valid_step);
  valid_step.synchronize();
  CHECK(trained.right());
  CHECK(validated.batches() == 20);
  CHECK(validated.right());
}

TEST_CASE("session: one session on each device of the process") {
  contract::start(1, 2);
  if (!second_device()) return;
  batch_recorder first(20), second(20);
  const contract::stream on_0;
  ok(cudaSetDevice(1));
  const contract::stream on_1;
  ok(cudaSetDevice(0));
  mr::session a{flow(160, {.device = mr::cuda_device(0), .stream = on_0}), quiet(2)};
  mr::session b{flow(160, {.device = mr::cuda_device(1), .stream = on_1}), quiet(2)};
  for (auto& batch : a) {
    first.step(batch, on_0);
    auto other = b.next();
    ok(cudaSetDevice(1));
    second.step(other, on_1);
    ok(cudaSetDevice(0));
  }
  on_0.synchronize();
  on_1.synchronize();
  CHECK(first.right());
  CHECK(second.right());
}

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

TEST_CASE("step path: the counters see the calls of this program") {
  contract::start();
  const wrapped_calls before;
  {
    const contract::stream s;
    s.synchronize();
    const auto memory = contract::make_device(16);
  }
  const wrapped_calls calls = wrapped_calls() - before;
  CHECK(calls.waits == 2);   // one of them when the stream is destroyed
  CHECK(calls.resource_calls == 4);
}

TEST_CASE("step path: next, get and release never wait; after the start nothing is created, registered or freed") {
  for (const int threads : {0, 2})
    for (const bool fixed : {false, true}) {
      contract::start();
      const contract::stream step, other;
      mr::session run{flow(160, {.device = mr::cuda_device(0), .stream = step, .slots = 3, .fixed_slots = fixed}),
                      {.epochs = 3, .threads = threads, .notice = mr::quiet}};
      batch_recorder recorder(60);
      const wrapped_calls before;
      for (auto& b : run) {
        recorder.step(b, b.stream());
        b.also_used_on(static_cast<cudaStream_t>(other));
      }
      const wrapped_calls calls = wrapped_calls() - before;
      // With threads = 0, the caller finally waits for its copy.
      if (threads > 0) CHECK(calls.waits == 0);
      CHECK(calls.resource_calls == 0);
      step.synchronize();
      CHECK(recorder.batches() == 60);
    }
}
