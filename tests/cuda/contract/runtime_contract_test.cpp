// The behavior of the CUDA runtime that Millrace relies on. Compiled with the fake runtime and the real one.
#include "contract.hpp"

using contract::ok;

namespace {
constexpr std::size_t page = 4096;
}

TEST_CASE("runtime: an event that was never recorded is complete") {
  contract::start();
  const contract::event e;
  CHECK(e.reached());
  ok(cudaEventSynchronize(e));
}

TEST_CASE("runtime: a stream that waits for an event that was never recorded continues") {
  contract::start();
  const contract::event e;
  const contract::stream s;
  ok(cudaStreamWaitEvent(s, e, 0));
  s.synchronize();
}

TEST_CASE("runtime: an event completes when its stream reaches it, and not before") {
  contract::start();
  const contract::event e;
  const contract::stream s;
  contract::stream_block block(s);
  ok(cudaEventRecord(e, s));
  contract::pause();
  CHECK_FALSE(e.reached());
  block.unblock();
  ok(cudaEventSynchronize(e));
  CHECK(e.reached());
  CHECK(block.is_over());
}

TEST_CASE("runtime: recorded again, an event only represents the new position") {
  contract::start();
  const contract::event e;
  const contract::stream s, other;
  contract::stream_block block(s);
  ok(cudaEventRecord(e, s));
  ok(cudaEventRecord(e, other));
  ok(cudaEventSynchronize(e));   // `s` is still blocked
  CHECK_FALSE(block.is_over());
}

TEST_CASE("runtime: a wait uses the position that its event had when the wait was enqueued") {
  contract::start();
  const contract::event e, passed;
  const contract::stream first, second, waits;
  contract::stream_block block(second);
  ok(cudaEventRecord(e, first));
  ok(cudaStreamWaitEvent(waits, e, 0));
  ok(cudaEventRecord(e, second));   // blocked: must not affect the earlier wait
  ok(cudaEventRecord(passed, waits));
  ok(cudaEventSynchronize(passed));
  CHECK_FALSE(block.is_over());
}

TEST_CASE("runtime: work of one stream runs in order") {
  contract::start();
  const contract::stream s;
  const auto from = contract::make_pinned(page, 7), to = contract::make_pinned(page);
  const auto device = contract::make_device(page);
  ok(cudaMemsetAsync(device.get(), 1, page, s));
  ok(cudaMemcpyAsync(device.get(), from.get(), page, cudaMemcpyHostToDevice, s));
  ok(cudaMemcpyAsync(to.get(), device.get(), page, cudaMemcpyDeviceToHost, s));
  s.synchronize();
  CHECK(contract::all_are(to.get(), page, 7));
}

TEST_CASE("runtime: work after a wait sees the work before the event in another stream") {
  contract::start();
  const contract::event copied;
  const contract::stream copies, step;
  const auto from = contract::make_pinned(page, 9), to = contract::make_pinned(page);
  const auto device = contract::make_device(page);
  contract::stream_block block(copies);
  ok(cudaMemcpyAsync(device.get(), from.get(), page, cudaMemcpyHostToDevice, copies));
  ok(cudaEventRecord(copied, copies));
  ok(cudaStreamWaitEvent(step, copied, 0));
  ok(cudaMemcpyAsync(to.get(), device.get(), page, cudaMemcpyDeviceToHost, step));
  block.unblock();
  step.synchronize();
  CHECK(contract::all_are(to.get(), page, 9));
}

TEST_CASE("runtime: a copy from pinned memory returns before it is complete") {
  contract::start();
  const contract::stream s;
  const auto from = contract::make_pinned(page, 3);
  const auto device = contract::make_device(page);
  contract::stream_block block(s);
  ok(cudaMemcpyAsync(device.get(), from.get(), page, cudaMemcpyHostToDevice, s));
  CHECK_FALSE(block.is_over());
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  block.unblock();
  s.synchronize();
}

TEST_CASE("runtime: a non-blocking stream and the legacy stream do not wait for each other") {
  contract::start();
  const contract::stream apart(cudaStreamNonBlocking);
  {
    contract::stream_block block(cudaStreamLegacy);
    apart.synchronize();
    CHECK_FALSE(block.is_over());
  }
  contract::stream_block block(apart);
  ok(cudaStreamSynchronize(cudaStreamLegacy));
  CHECK_FALSE(block.is_over());
}

TEST_CASE("runtime: a blocking stream and the legacy stream wait for each other") {
  contract::start();
  const contract::stream blocking(cudaStreamDefault);
  const contract::event e;
  {
    contract::stream_block block(cudaStreamLegacy);
    ok(cudaEventRecord(e, blocking));
    contract::pause();
    CHECK_FALSE(e.reached());
    block.unblock();
    ok(cudaEventSynchronize(e));
  }
  contract::stream_block block(blocking);
  ok(cudaEventRecord(e, cudaStreamLegacy));
  contract::pause();
  CHECK_FALSE(e.reached());
  block.unblock();
  ok(cudaEventSynchronize(e));
}

TEST_CASE("runtime: the null stream is the legacy stream") {
  contract::start();
  const contract::event e;
  contract::stream_block block(cudaStreamLegacy);
  ok(cudaEventRecord(e, nullptr));
  contract::pause();
  CHECK_FALSE(e.reached());
  block.unblock();
  ok(cudaEventSynchronize(e));
}

TEST_CASE("runtime: each thread has its own current device, which is initially 0") {
  contract::start();
  int count = 0, current = -1;
  ok(cudaGetDeviceCount(&count));
  ok(cudaSetDevice(count - 1));
  std::thread([&] { cudaGetDevice(&current); }).join();
  CHECK(current == 0);
  ok(cudaGetDevice(&current));
  CHECK(current == count - 1);
  ok(cudaSetDevice(0));
}

TEST_CASE("runtime: cudaGetLastError returns an error once, and clears it") {
  contract::start();
  CHECK(cudaSetDevice(1'000) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("runtime: pointer attributes return the location of memory") {
  contract::start();
  const auto pinned = contract::make_pinned(page);
  const auto device = contract::make_device(page);
  cudaPointerAttributes attributes{};
  ok(cudaPointerGetAttributes(&attributes, pinned.get()));
  CHECK(attributes.type == cudaMemoryTypeHost);
  ok(cudaPointerGetAttributes(&attributes, device.get()));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  const std::vector<unsigned char> pageable(page);
  ok(cudaPointerGetAttributes(&attributes, pageable.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("runtime: an event may be destroyed during a wait for it") {
  contract::start();
  const contract::stream s, waits;
  auto e = std::make_unique<contract::event>();
  contract::stream_block block(s);
  ok(cudaEventRecord(*e, s));
  ok(cudaStreamWaitEvent(waits, *e, 0));
  e.reset();
  CHECK(cudaStreamQuery(waits) == cudaErrorNotReady);
  block.unblock();
  waits.synchronize();
  CHECK(block.is_over());
}

TEST_CASE("runtime: an allocation on another thread invalidates a capture in global mode, but not in relaxed mode") {
  contract::start();
  const contract::stream s;
  for (const bool relaxed : {false, true}) {
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    cudaError_t result = cudaSuccess;
    std::thread([&] {
      cudaStreamCaptureMode mode = relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeGlobal;
      cudaThreadExchangeStreamCaptureMode(&mode);
      void* memory = nullptr;
      result = cudaMalloc(&memory, page);
      if (result == cudaSuccess) cudaFree(memory);
    }).join();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(s, &graph);
    CHECK(result == (relaxed ? cudaSuccess : cudaErrorStreamCaptureUnsupported));
    CHECK(ended == (relaxed ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
}

TEST_CASE("runtime: a stream reports that it is being captured") {
  contract::start();
  const contract::stream s;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  ok(cudaStreamIsCapturing(s, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  ok(cudaStreamIsCapturing(s, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(s, &graph));
  cudaGraphDestroy(graph);
}

TEST_CASE("runtime: a query of the legacy stream during the capture of a blocking one fails and invalidates nothing") {
  contract::start();
  const contract::stream s(cudaStreamDefault);
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CHECK(cudaStreamIsCapturing(cudaStreamLegacy, &status) == cudaErrorStreamCaptureImplicit);
  cudaGetLastError();
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(s, &graph));
  cudaGraphDestroy(graph);
}

TEST_CASE("runtime: a captured wait for an event from outside invalidates the capture") {
  contract::start();
  const contract::stream s, other;
  const contract::event outside;
  ok(cudaEventRecord(outside, other));
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaStreamWaitEvent(s, outside, 0) == cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

TEST_CASE("runtime: each launch of a graph reads the current content of its addresses") {
  contract::start();
  const contract::stream s;
  const auto device = contract::make_device(page), copy = contract::make_device(page);
  ok(cudaMemsetAsync(device.get(), 0, page, s));
  s.synchronize();
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  ok(cudaMemcpyAsync(copy.get(), device.get(), page, cudaMemcpyDeviceToDevice, s));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  ok(cudaStreamEndCapture(s, &graph));
  ok(cudaGraphInstantiate(&step, graph, 0));
  for (const int value : {4, 5}) {
    ok(cudaMemsetAsync(device.get(), value, page, s));
    ok(cudaGraphLaunch(step, s));
    s.synchronize();
    CHECK(contract::all_are(contract::read_back(copy.get(), page), value));
  }
  cudaGraphExecDestroy(step);
  cudaGraphDestroy(graph);
}

TEST_CASE("runtime: a stream may be destroyed with pending work, which still runs") {
  contract::start();
  const auto from = contract::make_pinned(page, 6);
  const auto device = contract::make_device(page);
  const contract::event copied;
  cudaStream_t s = nullptr;
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaMemcpyAsync(device.get(), from.get(), page, cudaMemcpyHostToDevice, s));
  ok(cudaEventRecord(copied, s));
  ok(cudaStreamDestroy(s));
  ok(cudaEventSynchronize(copied));
  CHECK(contract::all_are(contract::read_back(device.get(), page), 6));
}
