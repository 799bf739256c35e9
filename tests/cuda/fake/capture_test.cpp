#include "helpers.hpp"

#include <algorithm>
#include <functional>
#include <thread>

using namespace fake_cuda_test;
using fake_cuda::order;

namespace {

cudaError_t end(cudaStream_t s, cudaGraph_t* graph = nullptr) {
  cudaGraph_t result{};
  const cudaError_t error = cudaStreamEndCapture(s, &result);
  if (graph) *graph = result;
  else if (result) cudaGraphDestroy(result);
  return error;
}

cudaStreamCaptureStatus status_of(cudaStream_t s) {
  cudaStreamCaptureStatus status{};
  ok(cudaStreamIsCapturing(s, &status));
  return status;
}

struct capture_mode {
  cudaStreamCaptureMode mode;
  explicit capture_mode(cudaStreamCaptureMode m) : mode(m) { ok(cudaThreadExchangeStreamCaptureMode(&mode)); }
  ~capture_mode() { ok(cudaThreadExchangeStreamCaptureMode(&mode)); }
};

}  // namespace

TEST_CASE("captured work is recorded and not run; each launch of the graph runs it, in order") {
  for_each_world([](order) {
    a_stream s, side;
    an_event fork, join;
    pinned<int> source(1000);
    on_device<int> target(1000);
    std::vector<int> log;
    note one{&log, 1}, two{&log, 2};
    std::fill_n(source.data, 1000, 1);
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(status_of(s) == cudaStreamCaptureStatusActive);
    ok(cudaLaunchHostFunc(s, note::write, &one));
    ok(cudaEventRecord(fork, s));
    ok(cudaStreamWaitEvent(side, fork, 0));
    CHECK(status_of(side) == cudaStreamCaptureStatusActive);
    ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, side));
    ok(cudaEventRecord(join, side));
    ok(cudaStreamWaitEvent(s, join, 0));
    ok(cudaLaunchHostFunc(s, note::write, &two));
    cudaGraph_t graph{};
    cudaGraphExec_t executable{};
    ok(end(s, &graph));
    CHECK(status_of(side) == cudaStreamCaptureStatusNone);
    ok(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(fake_cuda::live().graphs == 2);
    ok(cudaGraphDestroy(graph));
    ok(cudaDeviceSynchronize());
    CHECK(log.empty());
    for (int i = 1; i <= 2; ++i) {
      std::fill_n(source.data, 1000, i);
      ok(cudaGraphLaunch(executable, s));
      ok(cudaStreamSynchronize(s));
      CHECK(target.values() == std::vector(1000, i));
    }
    CHECK(log == std::vector{1, 2, 1, 2});
    ok(cudaGraphExecDestroy(executable));
  });
}

TEST_CASE("launches of one graph in two streams run one after the other") {
  fake_cuda::reset({.when = order::late});
  a_stream s, other;
  std::vector<int> log;
  note one{&log, 1};
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  ok(cudaLaunchHostFunc(s, note::write, &one));
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  ok(end(s, &graph));
  ok(cudaGraphInstantiate(&executable, graph, 0));
  ok(cudaGraphLaunch(executable, s));
  ok(cudaGraphLaunch(executable, other));
  ok(cudaStreamSynchronize(other));
  CHECK(log.size() == 2);
}

TEST_CASE("an unsafe call during a capture: the modes of thread and capture may forbid it, which invalidates it") {
  using mode = cudaStreamCaptureMode;
  constexpr mode global = cudaStreamCaptureModeGlobal, local = cudaStreamCaptureModeThreadLocal,
                 relaxed = cudaStreamCaptureModeRelaxed;
  struct rule {
    mode of_capture, of_thread;
    bool own_thread_may, other_thread_may;
  };
  for (const rule& r : {rule{global, global, false, false}, {global, local, false, true}, {global, relaxed, true, true},
                        {local, global, false, true}, {local, local, false, true}, {local, relaxed, true, true},
                        {relaxed, global, true, true}, {relaxed, relaxed, true, true}}) {
    for (const bool own_thread : {true, false}) {
      CAPTURE(static_cast<int>(r.of_capture));
      CAPTURE(static_cast<int>(r.of_thread));
      CAPTURE(own_thread);
      fake_cuda::reset();
      a_stream s, another;
      an_event e;
      void *device = nullptr, *host = nullptr;
      ok(cudaMalloc(&device, 10));
      ok(cudaHostAlloc(&host, 10, 0));
      const std::vector<std::function<cudaError_t()>> unsafe = {
          [&] { void* p; return cudaMalloc(&p, 10); },
          [&] { void* p; return cudaHostAlloc(&p, 10, 0); },
          [&] { return cudaEventQuery(e); },
          [&] { return cudaEventSynchronize(e); },
          [&] { return cudaStreamQuery(another); },
          [&] { return cudaStreamSynchronize(another); },
          [&] { return cudaFree(device); },
          [&] { return cudaFreeHost(host); },
      };
      const bool may = own_thread ? r.own_thread_may : r.other_thread_may;
      for (const auto& function : unsafe) {
        ok(cudaStreamBeginCapture(s, r.of_capture));
        const auto attempt = [&] {
          const capture_mode m(r.of_thread);
          CHECK(function() == (may ? cudaSuccess : cudaErrorStreamCaptureUnsupported));
        };
        if (own_thread) attempt();
        else std::thread(attempt).join();
        CHECK(status_of(s) == (may ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated));
        if (!may) CHECK(cudaEventRecord(e, s) == cudaErrorStreamCaptureInvalidated);
        CHECK(end(s) == (may ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
      }
    }
  }
}

TEST_CASE("exchanging the mode returns the old one, and each thread has its own") {
  fake_cuda::reset();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ok(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeGlobal);
  std::thread([] {
    cudaStreamCaptureMode theirs = cudaStreamCaptureModeThreadLocal;
    ok(cudaThreadExchangeStreamCaptureMode(&theirs));
    CHECK(theirs == cudaStreamCaptureModeGlobal);
  }).join();
  ok(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == cudaStreamCaptureModeRelaxed);
}

TEST_CASE("a capture must not depend on outside work, nor outside work on it") {
  fake_cuda::reset();
  a_stream s, outside;
  an_event before, inside;
  ok(cudaEventRecord(before, outside));
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  CHECK(cudaStreamWaitEvent(s, before, 0) == cudaErrorStreamCaptureIsolation);
  CHECK(end(s) == cudaErrorStreamCaptureInvalidated);

  for (const bool query : {true, false}) {
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    ok(cudaEventRecord(inside, s));
    CHECK((query ? cudaEventQuery(inside) : cudaEventSynchronize(inside)) == cudaErrorCapturedEvent);
    CHECK(end(s) == cudaErrorStreamCaptureInvalidated);
  }

  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  ok(cudaEventRecord(inside, s));
  ok(end(s));
  CHECK(cudaEventQuery(inside) == cudaErrorCapturedEvent);      // also after the capture
  CHECK(cudaStreamWaitEvent(outside, inside, 0) == cudaErrorCapturedEvent);
  ok(cudaEventRecord(inside, outside));                         // recorded outside, it is a normal event again
  ok(cudaEventSynchronize(inside));

  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  CHECK(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(s) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("two captures do not become one") {
  fake_cuda::reset();
  a_stream a, b;
  an_event e;
  ok(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  ok(cudaStreamBeginCapture(b, cudaStreamCaptureModeRelaxed));
  ok(cudaEventRecord(e, a));
  CHECK(cudaStreamWaitEvent(b, e, 0) == cudaErrorStreamCaptureMerge);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);
  CHECK(end(b) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("the legacy stream during a capture: refused if and only if a blocking stream is captured") {
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    const auto refused = [&](auto function) {
      fake_cuda::reset();
      a_stream s(blocking ? cudaStreamDefault : cudaStreamNonBlocking);
      an_event e;
      on_device<int> device(10);
      ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
      CHECK(function(e.handle, device.data) == (blocking ? cudaErrorStreamCaptureImplicit : cudaSuccess));
      CHECK(end(s) == (blocking ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
    };
    refused([](cudaEvent_t e, int*) { return cudaEventRecord(e, nullptr); });
    refused([](cudaEvent_t e, int*) { return cudaStreamWaitEvent(cudaStreamLegacy, e, 0); });
    refused([](cudaEvent_t, int* p) { return cudaMemsetAsync(p, 0, 40, nullptr); });
    refused([](cudaEvent_t, int* p) { int v[10]; return cudaMemcpyAsync(v, p, 40, cudaMemcpyDeviceToHost, nullptr); });
    refused([](cudaEvent_t, int*) { return cudaLaunchHostFunc(nullptr, [](void*) {}, nullptr); });
    refused([](cudaEvent_t, int*) { return cudaStreamQuery(nullptr); });
    {
      const capture_mode may(cudaStreamCaptureModeRelaxed);
      refused([](cudaEvent_t, int* p) {
        int v[10];
        cudaStreamCaptureMode m = cudaStreamCaptureModeRelaxed;
        ok(cudaThreadExchangeStreamCaptureMode(&m));
        return cudaMemcpy(v, p, 40, cudaMemcpyDeviceToHost);
      });
    }
  }
}

TEST_CASE("a capture can only begin and end in valid streams") {
  fake_cuda::reset();
  a_stream s, side;
  an_event e;
  std::vector<int> log;
  note n{&log, 1};
  cudaGraph_t graph{};
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(s) == cudaErrorIllegalState);
  ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
  std::thread([&] { CHECK(end(s) == cudaErrorStreamCaptureWrongThread); }).join();
  ok(cudaEventRecord(e, s));
  ok(cudaStreamWaitEvent(side, e, 0));
  ok(cudaLaunchHostFunc(side, note::write, &n));
  CHECK(end(side) == cudaErrorStreamCaptureUnmatched);
  CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined);   // no stream waited for `side`
  CHECK(graph == nullptr);
  CHECK(status_of(side) == cudaStreamCaptureStatusNone);
}

TEST_CASE("a graph that uses freed memory breaks the device") {
  fake_cuda::reset();
  a_stream s;
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  {
    pinned<int> source(10);
    on_device<int> target(10);
    ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    ok(cudaMemcpyAsync(target, source, 40, cudaMemcpyHostToDevice, s));
    ok(end(s, &graph));
    ok(cudaGraphInstantiate(&executable, graph, 0));
  }
  CHECK(cudaGraphLaunch(executable, s) == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(fake_cuda::violations() == std::vector<std::string>{"cudaGraphLaunch: the graph uses memory that was freed"});
}
