#include "helpers.hpp"

#include "../../eventually.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

using namespace fake_cuda_test;
using fake_cuda::order;

TEST_CASE("each thread has its own current device, initially the first one") {
  fake_cuda::reset({.devices = 3});
  int device = -1;
  ok(cudaSetDevice(2));
  std::thread([] {
    int mine = -1;
    ok(cudaGetDevice(&mine));
    CHECK(mine == 0);
  }).join();
  ok(cudaGetDevice(&device));
  CHECK(device == 2);
  CHECK(cudaSetDevice(3) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  fake_cuda::reset();
  ok(cudaGetDevice(&device));
  CHECK(device == 0);
}

TEST_CASE("calls that need the right current device, and calls that do not") {
  fake_cuda::reset({.devices = 2, .when = order::late});
  a_stream s0;
  an_event e0;
  on_device<int> d0(10);
  pinned<int> host(10);
  ok(cudaSetDevice(1));
  a_stream s1;
  an_event e1;
  std::vector<int> log;
  note n{&log, 1};
  CHECK(cudaEventRecord(e0, s1) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(e0, nullptr) == cudaErrorInvalidResourceHandle);   // the null stream is device 1's
  ok(cudaEventRecord(e0, s0));
  CHECK(cudaLaunchHostFunc(s0, note::write, &n) == cudaErrorInvalidResourceHandle);
  ok(cudaLaunchHostFunc(s1, note::write, &n));
  ok(cudaMemcpyAsync(d0, host, d0.bytes, cudaMemcpyHostToDevice, s0));     // copies use their stream's device
  ok(cudaStreamWaitEvent(s1, e0, 0));
  CHECK(cudaEventQuery(e0) == cudaErrorNotReady);
  ok(cudaEventRecord(e1, s1));
  ok(cudaEventSynchronize(e0));
  ok(cudaEventSynchronize(e1));
  CHECK(log == std::vector{1});
  CHECK(fake_cuda::pending() == 1);
  ok(cudaDeviceSynchronize());           // device 1 has no work left
  CHECK(fake_cuda::pending() == 1);
  ok(cudaSetDevice(0));
  ok(cudaDeviceSynchronize());
  CHECK(fake_cuda::pending() == 0);
}

TEST_CASE("devices report their properties") {
  fake_cuda::reset({.devices = 2});
  int value = 0;
  char bus[20];
  cudaDeviceProp properties{};
  ok(cudaGetDeviceCount(&value));
  CHECK(value == 2);
  ok(cudaGetDeviceProperties(&properties, 1));
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
  CHECK(value == properties.multiProcessorCount);
  ok(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1));
  CHECK(value == properties.major);
  ok(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
  CHECK(std::string(bus) == "0000:02:00.0");
  CHECK(properties.pciBusID == 2);
  CHECK(cudaDeviceGetPCIBusId(bus, 5, 1) == cudaErrorInvalidValue);
  CHECK(cudaGetDeviceProperties(&properties, 2) == cudaErrorInvalidDevice);
  ok(cudaRuntimeGetVersion(&value));
  CHECK(value == CUDART_VERSION);
}

TEST_CASE("an error stays in its thread until it is queried; not ready is an error, too") {
  fake_cuda::reset({.when = order::late});
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  std::thread([] { CHECK(cudaPeekAtLastError() == cudaSuccess); }).join();
  a_stream s;
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);   // a call that succeeds does not clear it
  CHECK(cudaGetLastError() == cudaSuccess);
  std::vector<int> log;
  note n{&log, 1};
  ok(cudaLaunchHostFunc(s, note::write, &n));
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(std::string(cudaGetErrorName(cudaErrorNotReady)) == "cudaErrorNotReady");
  CHECK(std::string(cudaGetErrorString(cudaErrorNotReady)) == "not done yet");
  CHECK(std::string(cudaGetErrorName(static_cast<cudaError_t>(998))) == "unrecognized error code");
}

TEST_CASE("a failed device: every call returns the error, pending work is dropped, destructors still count") {
  for (const int threads : {0, 2}) {
    fake_cuda::reset({.when = order::late, .background_threads = threads});
    std::vector<int> log;
    note n{&log, 1};
    {
      a_stream s;
      an_event e;
      pinned<int> source(2000);
      on_device<int> target(2000);
      ok(cudaStreamSynchronize(s));
      ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, s));
      ok(cudaEventRecord(e, s));
      fake_cuda::break_device(cudaErrorIllegalAddress);
      CHECK(cudaEventQuery(e) == cudaErrorIllegalAddress);
      CHECK(cudaEventSynchronize(e) == cudaErrorIllegalAddress);
      CHECK(cudaLaunchHostFunc(s, note::write, &n) == cudaErrorIllegalAddress);
      CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
      CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
      CHECK(fake_cuda::host_can_write(source.data));
      CHECK(fake_cuda::pending() == 0);
    }
    CHECK(log.empty());
    CHECK(fake_cuda::live() == fake_cuda::handles{});
    fake_cuda::reset();
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
}

TEST_CASE("while the runtime unloads, every call reports that") {
  fake_cuda::reset();
  cudaStream_t s{};
  void* p = nullptr;
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaMalloc(&p, 100));
  fake_cuda::unload();
  int value = 0;
  CHECK(cudaStreamDestroy(s) == cudaErrorCudartUnloading);
  CHECK(cudaFree(p) == cudaErrorCudartUnloading);
  CHECK(cudaGetDevice(&value) == cudaErrorCudartUnloading);
  CHECK(cudaRuntimeGetVersion(&value) == cudaErrorCudartUnloading);
  CHECK(cudaGetLastError() == cudaErrorCudartUnloading);
}

TEST_CASE("no device, and a driver that is too old or missing") {
  int count = 5, version = 0;
  void* p = nullptr;
  fake_cuda::reset({.devices = 0});
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  CHECK(cudaMalloc(&p, 100) == cudaErrorNoDevice);
  for (const int driver : {0, 12080}) {
    fake_cuda::reset({.driver_version = driver});
    count = 5;
    CHECK(cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver);
    CHECK(count == 0);
    CHECK(cudaSetDevice(0) == cudaErrorInsufficientDriver);
    ok(cudaDriverGetVersion(&version));
    CHECK(version == driver);
    ok(cudaRuntimeGetVersion(&version));
  }
}

TEST_CASE("the Nth call of each function fails once with the requested error") {
  using call = std::function<cudaError_t()>;
  cudaStream_t s{}, other{};
  cudaEvent_t e{};
  void *host = nullptr, *device = nullptr;
  int value = 0;
  std::size_t bytes = 0;
  cudaDeviceProp properties{};
  cudaPointerAttributes attributes{};
  cudaStreamCaptureStatus status{};
  alignas(4096) static unsigned char own[4096];
  char text[20];
  const auto nothing = [](void*) {};
  // Each succeeds twice in a row.
  struct named_call {
    const char* name;
    call make;
  };
  const std::vector<named_call> functions = {
      {"cudaGetDeviceCount", [&] { return cudaGetDeviceCount(&value); }},
      {"cudaGetDevice", [&] { return cudaGetDevice(&value); }},
      {"cudaSetDevice", [&] { return cudaSetDevice(0); }},
      {"cudaDriverGetVersion", [&] { return cudaDriverGetVersion(&value); }},
      {"cudaRuntimeGetVersion", [&] { return cudaRuntimeGetVersion(&value); }},
      {"cudaGetDeviceProperties", [&] { return cudaGetDeviceProperties(&properties, 0); }},
      {"cudaDeviceGetAttribute", [&] { return cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0); }},
      {"cudaDeviceGetPCIBusId", [&] { return cudaDeviceGetPCIBusId(text, sizeof text, 0); }},
      {"cudaMemGetInfo", [&] { return cudaMemGetInfo(&bytes, &bytes); }},
      {"cudaDeviceSynchronize", [&] { return cudaDeviceSynchronize(); }},
      {"cudaStreamCreateWithFlags", [&] { return cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking); }},
      {"cudaStreamQuery", [&] { return cudaStreamSynchronize(s), cudaStreamQuery(s); }},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(s); }},
      {"cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(s, e, 0); }},
      {"cudaStreamIsCapturing", [&] { return cudaStreamIsCapturing(s, &status); }},
      {"cudaLaunchHostFunc", [&] { return cudaLaunchHostFunc(s, nothing, nullptr); }},
      {"cudaEventCreateWithFlags", [&] { cudaEvent_t event; return cudaEventCreateWithFlags(&event, 0); }},
      {"cudaEventRecord", [&] { return cudaEventRecord(e, s); }},
      {"cudaEventQuery", [&] { return cudaEventSynchronize(e), cudaEventQuery(e); }},
      {"cudaEventSynchronize", [&] { return cudaEventSynchronize(e); }},
      {"cudaHostAlloc", [&] { void* p; return cudaHostAlloc(&p, 10, 0); }},
      {"cudaMalloc", [&] { void* p; return cudaMalloc(&p, 10); }},
      {"cudaHostRegister", [&] { cudaHostUnregister(own); return cudaHostRegister(own, 4096, 0); }},
      {"cudaMemcpy", [&] { return cudaMemcpy(device, host, 100, cudaMemcpyHostToDevice); }},
      {"cudaMemcpyAsync", [&] { return cudaMemcpyAsync(device, host, 100, cudaMemcpyHostToDevice, s); }},
      {"cudaMemset", [&] { return cudaMemset(device, 0, 100); }},
      {"cudaMemsetAsync", [&] { return cudaMemsetAsync(device, 0, 100, s); }},
      {"cudaPointerGetAttributes", [&] { return cudaPointerGetAttributes(&attributes, host); }},
  };
  for (const named_call& function : functions) {
    const char* const name = function.name;
    for (const std::uint64_t nth : {1, 3}) {
      CAPTURE(name);
      CAPTURE(nth);
      fake_cuda::reset();
      ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
      ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
      ok(cudaHostAlloc(&host, 100, 0));
      ok(cudaMalloc(&device, 100));
      const std::uint64_t before = fake_cuda::calls(name);
      fake_cuda::fail(name, nth, cudaErrorMemoryAllocation);
      for (std::uint64_t i = 1; i <= 4; ++i) {
        CHECK(function.make() == (i == nth ? cudaErrorMemoryAllocation : cudaSuccess));
      }
      CHECK(fake_cuda::calls(name) == before + 4);
    }
  }
  fake_cuda::reset();   // while the memory that is registered still exists
}

TEST_CASE("a failed release still releases") {
  fake_cuda::reset();
  for (const char* name : {"cudaStreamDestroy", "cudaEventDestroy", "cudaFreeHost", "cudaFree"}) {
    fake_cuda::fail(name, 1, cudaErrorLaunchFailure);
  }
  {
    a_stream s;
    an_event e;
    pinned<int> host(1);
    on_device<int> device(1);
  }
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  CHECK(fake_cuda::live() == fake_cuda::handles{});
}

TEST_CASE("under the guard, calls that wait, allocate or free are violations with their names; others are not") {
  fake_cuda::reset();
  a_stream s;
  an_event e;
  pinned<int> host(10);
  on_device<int> device(10);
  unsigned char own[100] = {};
  on_device<unsigned char> small(100);
  {
    const fake_cuda::no_waiting_here guard;
    ok(cudaMemcpyAsync(device, host, 40, cudaMemcpyHostToDevice, s));
    ok(cudaEventRecord(e, s));
    (void)cudaEventQuery(e);
    ok(cudaStreamWaitEvent(s, e, 0));
    std::thread([&] { ok(cudaStreamSynchronize(s)); }).join();   // another thread may
    CHECK(fake_cuda::violations().empty());

    ok(cudaStreamSynchronize(s));
    ok(cudaEventSynchronize(e));
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(device, host, 40, cudaMemcpyHostToDevice));
    ok(cudaMemcpyAsync(small, own, 100, cudaMemcpyHostToDevice, s));
    void* p = nullptr;
    ok(cudaMalloc(&p, 10));
    ok(cudaFree(p));
    ok(cudaHostAlloc(&p, 10, 0));
    ok(cudaFreeHost(p));
  }
  const std::vector<std::string> expected = {
      "cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy",
      "cudaMemcpyAsync (pageable memory)", "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost"};
  CHECK(fake_cuda::violations() == expected);
  ok(cudaStreamSynchronize(s));
  CHECK(fake_cuda::violations() == expected);
}

TEST_CASE("a host function that calls CUDA fails, and is a violation") {
  for (const int threads : {0, 2}) {
    fake_cuda::reset({.background_threads = threads});
    struct tries {
      cudaStream_t stream;
      cudaError_t query = cudaSuccess, last = cudaSuccess;
      void* context = nullptr;
    };
    {
      a_stream s;
      tries t{.stream = s};
      ok(cudaLaunchHostFunc(s, [](void* p) {
        auto* mine = static_cast<tries*>(p);
        mine->query = cudaStreamQuery(mine->stream);
        mine->last = cudaGetLastError();
        mine->context = fake_cuda::current_context();
      }, &t));
      ok(cudaStreamSynchronize(s));
      CHECK(t.query == cudaErrorNotPermitted);
      CHECK(t.last == cudaErrorNotPermitted);
      CHECK(t.context == nullptr);
    }
    CHECK(fake_cuda::violations() ==
          std::vector<std::string>{"cudaStreamQuery: called by a host function",
                                   "cudaGetLastError: called by a host function",
                                   "cuCtxGetCurrent: called by a host function"});
    CHECK(cudaGetLastError() == cudaSuccess);   // of this thread
  }
  fake_cuda::reset();
}

TEST_CASE("one separate thread runs all host functions, and kernels do not wait for them") {
  for_each_world([](order) {
    a_stream first, second, third;
    struct launch {
      std::atomic<std::thread::id> thread{};
      std::atomic<bool> open{false};
    } one, two, kernel;
    const auto note_thread = [](void* p) { static_cast<launch*>(p)->thread = std::this_thread::get_id(); };
    std::thread waits([&] {
      ok(cudaLaunchHostFunc(first, [](void* p) {
        static_cast<launch*>(p)->thread = std::this_thread::get_id();
        eventually([&] { return static_cast<launch*>(p)->open.load(); });
      }, &one));
      ok(cudaStreamSynchronize(first));
    });
    CHECK(eventually([&] { return one.thread.load() != std::thread::id(); }));
    ok(cudaLaunchHostFunc(second, note_thread, &two));
    const std::uintptr_t no_addresses = 0;
    fake_cuda::next_kernel(&no_addresses, sizeof no_addresses);
    ok(cudaLaunchHostFunc(third, note_thread, &kernel));
    ok(cudaStreamSynchronize(third));
    CHECK(kernel.thread.load() != std::thread::id());
    for (int i = 0; i < 20; ++i) CHECK(cudaStreamQuery(second) == cudaErrorNotReady);
    (void)cudaGetLastError();
    CHECK(two.thread.load() == std::thread::id());
    one.open = true;
    ok(cudaStreamSynchronize(second));
    waits.join();
    CHECK(two.thread.load() == one.thread.load());
    CHECK(two.thread.load() != std::this_thread::get_id());
    CHECK(kernel.thread.load() != one.thread.load());
  });
}

TEST_CASE("in the child of a fork the runtime is not initialised") {
  fake_cuda::reset({.background_threads = 1});
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = cudaGetDeviceCount(&count) == cudaErrorInitializationError &&
                         cudaGetLastError() == cudaErrorInitializationError;
    _exit(refused ? 7 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  ok(cudaGetDeviceCount(&count));
  fake_cuda::reset();
}

TEST_CASE("a call waits while the queue of its stream is full") {
  fake_cuda::reset({.when = order::late, .queue_depth = 2});
  {
    a_stream s, other;
    std::vector<int> log;
    note notes[] = {{&log, 1}, {&log, 2}, {&log, 3}, {&log, 4}};
    for (int i = 0; i < 2; ++i) ok(cudaLaunchHostFunc(s, note::write, &notes[i]));
    ok(cudaLaunchHostFunc(other, note::write, &notes[3]));
    CHECK(log.empty());
    ok(cudaLaunchHostFunc(s, note::write, &notes[2]));
    CHECK(log == std::vector{1});
    fake_cuda::run_all();
  }
  fake_cuda::reset();
}
