#include "helpers.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <numeric>

using namespace fake_cuda_test;
using fake_cuda::host_can_read;
using fake_cuda::host_can_write;
using fake_cuda::order;

namespace {

struct pages_free {
  void operator()(unsigned char* p) const { std::free(p); }
};
/// The program's own memory, slightly after the start of a page.
using own_memory = std::unique_ptr<unsigned char[], pages_free>;
own_memory pageable(std::size_t bytes) {
  auto* p = static_cast<unsigned char*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
  std::fill_n(p, bytes, static_cast<unsigned char>(1));
  return own_memory(p);
}

bool has_violation(std::string_view text) {
  const std::vector<std::string> all = fake_cuda::violations();
  return std::any_of(all.begin(), all.end(), [&](const std::string& v) { return v.find(text) != v.npos; });
}

}  // namespace

TEST_CASE("a pinned source is read-only for the host from enqueue to completion, for any number of copies") {
  fake_cuda::reset({.when = order::late});
  pinned<unsigned char> source(3 * page);
  on_device<unsigned char> target(3 * page);
  a_stream s;
  an_event first, second;
  std::fill_n(source.data, 3 * page, static_cast<unsigned char>(5));
  CHECK(host_can_write(source.data));
  ok(cudaMemcpyAsync(target, source, 2 * page, cudaMemcpyHostToDevice, s));
  ok(cudaEventRecord(first, s));
  ok(cudaMemcpyAsync(target + page, source + page, 100, cudaMemcpyHostToDevice, s));
  ok(cudaEventRecord(second, s));
  CHECK_FALSE(host_can_write(source.data));
  CHECK_FALSE(host_can_write(source.data + 2 * page - 1));
  CHECK(host_can_write(source.data + 2 * page));
  CHECK(host_can_read(source.data));
  ok(cudaEventSynchronize(first));
  CHECK(host_can_write(source.data));
  CHECK_FALSE(host_can_write(source.data + page));   // the second copy still reads it
  ok(cudaEventSynchronize(second));
  CHECK(host_can_write(source.data + page));
}

TEST_CASE("a copy back into the page of a source leaves it read-only") {
  fake_cuda::reset({.when = order::late});
  pinned<unsigned char> both(page);
  on_device<unsigned char> target(page);
  a_stream sends, fetches;
  ok(cudaMemsetAsync(target, 3, page, fetches));
  ok(cudaMemcpyAsync(target, both, 100, cudaMemcpyHostToDevice, sends));
  ok(cudaMemcpyAsync(both + 200, target + 200, 100, cudaMemcpyDeviceToHost, fetches));
  ok(cudaStreamSynchronize(fetches));
  CHECK(both[299] == 3);
  CHECK_FALSE(host_can_write(both.data + 200));
  ok(cudaStreamSynchronize(sends));
  CHECK(host_can_write(both.data + 200));
}

TEST_CASE("writing a source too early is an immediate fault, not a wrong value later") {
  fake_cuda::reset({.when = order::late});
  pinned<unsigned char> source(page);
  on_device<unsigned char> target(page);
  a_stream s;
  ok(cudaMemcpyAsync(target, source, page, cudaMemcpyHostToDevice, s));
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, [](int) { _exit(11); });
    *static_cast<volatile unsigned char*>(source.data) = 1;
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 11);
  ok(cudaStreamSynchronize(s));
}

TEST_CASE("a destination is poisoned from the moment when the copy may begin until it completes, and not before") {
  fake_cuda::reset({.when = order::late});
  pinned<int> source(2000);
  on_device<int> target(2000);
  a_stream copies, user;
  an_event released;
  std::fill_n(source.data, 2000, 1);
  ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, copies));
  ok(cudaStreamSynchronize(copies));
  // The user's stream still reads the first batch; the next copy waits for it on the device.
  int value = 0;
  struct reads {
    int* from;
    int* to;
  } r{target, &value};
  ok(cudaLaunchHostFunc(user, [](void* p) { *static_cast<reads*>(p)->to = *static_cast<reads*>(p)->from; }, &r));
  ok(cudaEventRecord(released, user));
  ok(cudaStreamWaitEvent(copies, released, 0));
  ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, copies));
  CHECK(target.values()[0] == 1);
  ok(cudaStreamSynchronize(user));
  CHECK(value == 1);
  fake_cuda::run_all();
  CHECK(target.values()[1999] == 1);
  // Without dependencies, the copy may begin at once.
  ok(cudaMemcpyAsync(target, source, source.bytes, cudaMemcpyHostToDevice, copies));
  const std::vector<int> now = target.values();
  CHECK(reinterpret_cast<const unsigned char*>(now.data())[0] == fake_cuda::poison);
  ok(cudaStreamSynchronize(copies));
  CHECK(target.values()[0] == 1);
}

TEST_CASE("a copy back poisons the host's memory at once, which exposes early reads") {
  fake_cuda::reset({.when = order::late});
  pinned<unsigned char> there(100), back(100);
  on_device<unsigned char> target(100);
  a_stream s;
  std::fill_n(there.data, 100, static_cast<unsigned char>(9));
  std::fill_n(back.data, 100, static_cast<unsigned char>(9));
  ok(cudaMemcpyAsync(target, there, 100, cudaMemcpyHostToDevice, s));
  ok(cudaMemcpyAsync(back, target, 100, cudaMemcpyDeviceToHost, s));
  CHECK(back[50] == fake_cuda::poison);
  ok(cudaStreamSynchronize(s));
  CHECK(back[50] == 9);
}

TEST_CASE("a buffer may be sent and then overwritten by a copy back in the same stream") {
  for_each_world([](order) {
    pinned<unsigned char> buffer(2 * page);
    on_device<unsigned char> first(2 * page), second(2 * page);
    a_stream s;
    std::fill_n(buffer.data, 2 * page, static_cast<unsigned char>(4));
    ok(cudaMemsetAsync(second, 6, 2 * page, s));
    ok(cudaMemcpyAsync(first, buffer, 2 * page, cudaMemcpyHostToDevice, s));
    ok(cudaMemcpyAsync(buffer, second, 2 * page, cudaMemcpyDeviceToHost, s));
    ok(cudaStreamSynchronize(s));
    CHECK(first.values() == std::vector<unsigned char>(2 * page, 4));
    CHECK(buffer[0] == 6);
    CHECK(buffer[2 * page - 1] == 6);
  });
}

TEST_CASE("device memory is only accessible to kernels of its own device, not to the host") {
  fake_cuda::reset({.devices = 2});
  on_device<int> here(10);
  ok(cudaSetDevice(1));
  on_device<int> elsewhere(10);
  ok(cudaSetDevice(0));
  CHECK_FALSE(host_can_read(here.data));
  CHECK_FALSE(host_can_write(here.data));
  a_stream s;
  struct looks {
    void *here, *elsewhere;
    bool can = false, cannot = false;
  } l{here.data, elsewhere.data};
  ok(cudaLaunchHostFunc(s, [](void* p) {
    auto* mine = static_cast<looks*>(p);
    mine->can = host_can_write(mine->here);
    mine->cannot = !host_can_read(mine->elsewhere);
  }, &l));
  ok(cudaStreamSynchronize(s));
  CHECK(l.can);
  CHECK(l.cannot);
  CHECK_FALSE(host_can_read(here.data));
}

TEST_CASE("fresh memory is poisoned; freed memory faults and its address is not reused") {
  fake_cuda::reset();
  void *device = nullptr, *host = nullptr;
  ok(cudaMalloc(&device, 100));
  ok(cudaHostAlloc(&host, 100, cudaHostAllocDefault));
  CHECK(*fake_cuda::peek(static_cast<unsigned char*>(device)) == fake_cuda::poison);
  CHECK(*static_cast<unsigned char*>(host) == fake_cuda::poison);
  CHECK(reinterpret_cast<std::uintptr_t>(host) % page == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(device) % page == 0);
  CHECK(fake_cuda::live() == fake_cuda::handles{.host_allocations = 1, .device_allocations = 1});
  ok(cudaFree(device));
  ok(cudaFreeHost(host));
  CHECK(fake_cuda::live() == fake_cuda::handles{});
  CHECK_FALSE(host_can_read(host));
  for (int i = 0; i < 20; ++i) {
    void* again = nullptr;
    ok(cudaHostAlloc(&again, 100, cudaHostAllocDefault));
    CHECK(again != host);
    ok(cudaFreeHost(again));
  }
  on_device<unsigned char> target(100);
  CHECK(cudaMemcpy(target, host, 100, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(has_violation("memory that was freed"));
  CHECK(cudaFreeHost(host) == cudaErrorInvalidValue);
  CHECK(has_violation("freed before"));
  ok(cudaFree(nullptr));
  ok(cudaFreeHost(nullptr));
}

TEST_CASE("freeing during a copy waits for it, and is a violation") {
  fake_cuda::reset({.when = order::late});
  on_device<unsigned char> target(page);
  a_stream s;
  {
    pinned<unsigned char> source(page);
    std::fill_n(source.data, page, static_cast<unsigned char>(2));
    ok(cudaMemcpyAsync(target, source, page, cudaMemcpyHostToDevice, s));
  }
  CHECK(has_violation("cudaFreeHost: memory of a copy in progress"));
  CHECK(target.values() == std::vector<unsigned char>(page, 2));
}

TEST_CASE("freeing does not wait for other work; device memory of an unfinished kernel is a violation") {
  fake_cuda::reset({.when = fake_cuda::order::late});
  const a_stream s;
  void *host = nullptr, *device = nullptr, *elsewhere = nullptr;
  ok(cudaHostAlloc(&host, 100, cudaHostAllocDefault));
  ok(cudaMalloc(&device, 100));
  ok(cudaMalloc(&elsewhere, 100));
  bool ran = false;
  const void* const inside = static_cast<const char*>(device) + 50;
  fake_cuda::next_kernel(&inside, sizeof inside);
  ok(cudaLaunchHostFunc(s, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran));
  ok(cudaFreeHost(host));
  ok(cudaFree(elsewhere));
  CHECK_FALSE(ran);
  CHECK(fake_cuda::violations().empty());
  ok(cudaFree(device));
  CHECK(ran);
  CHECK(has_violation("cudaFree: memory of an unfinished kernel"));
}

TEST_CASE("writing past the end is reported when the memory is freed; a page further it faults") {
  fake_cuda::reset();
  {
    pinned<unsigned char> m(100);
    CHECK_FALSE(host_can_write(m.data + page));
    m.data[100] = 0;
  }
  CHECK(has_violation("cudaFreeHost: its end was overwritten"));
}

TEST_CASE("copies must fit their allocations and their direction") {
  fake_cuda::reset();
  pinned<unsigned char> host(100);
  on_device<unsigned char> device(100);
  a_stream s;
  CHECK(cudaMemcpyAsync(device, host, 101, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(device + 50, host, 51, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(device, host, 100, cudaMemcpyDeviceToHost, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(host, device, 100, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(device, host, 100, static_cast<cudaMemcpyKind>(7), s) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpyAsync(device, nullptr, 100, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
  ok(cudaMemcpyAsync(device, host, 0, cudaMemcpyHostToDevice, s));
  ok(cudaMemcpyAsync(device, host, 100, cudaMemcpyDefault, s));
  CHECK(cudaMemsetAsync(device, 0, 101, s) == cudaErrorInvalidValue);
}

TEST_CASE("pageable memory is staged before the call returns, and counts as waiting") {
  fake_cuda::reset({.when = order::late});
  const own_memory source = pageable(page), back = pageable(page);
  on_device<unsigned char> target(page);
  a_stream s;
  const std::uint64_t before = fake_cuda::synchronising_calls();
  ok(cudaMemcpyAsync(target, source.get(), page, cudaMemcpyHostToDevice, s));
  CHECK(fake_cuda::synchronising_calls() == before + 1);
  CHECK(fake_cuda::pending() == 1);
  source[0] = 99;   // too late to matter
  ok(cudaMemcpyAsync(back.get(), target, page, cudaMemcpyDeviceToHost, s));
  CHECK(fake_cuda::pending() == 0);
  CHECK(back[0] == 1);
}

TEST_CASE("registered memory behaves like pinned memory: full pages inside it are read-only during a copy") {
  fake_cuda::reset({.when = order::late});
  const own_memory all = pageable(4 * page);
  unsigned char* const start = all.get() + 100;
  const std::size_t bytes = 3 * page;
  on_device<unsigned char> target(bytes);
  a_stream s;
  CHECK(cudaHostRegister(start, 0, cudaHostRegisterDefault) == cudaErrorInvalidValue);
  ok(cudaHostRegister(start, bytes, cudaHostRegisterDefault));
  CHECK(cudaHostRegister(start + page, 10, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(fake_cuda::live().host_allocations == 1);
  const std::uint64_t before = fake_cuda::synchronising_calls();
  ok(cudaMemcpyAsync(target, start, bytes, cudaMemcpyHostToDevice, s));
  CHECK(fake_cuda::synchronising_calls() == before);
  CHECK(host_can_write(start));              // shares its page with another's bytes
  CHECK_FALSE(host_can_write(start + page));
  CHECK(host_can_write(start + bytes - 1));
  ok(cudaStreamSynchronize(s));
  CHECK(host_can_write(start + page));
  CHECK(target.values() == std::vector<unsigned char>(bytes, 1));
  ok(cudaHostUnregister(start));
  CHECK(cudaHostUnregister(start) == cudaErrorHostMemoryNotRegistered);
}

TEST_CASE("a pointer's attributes return its kind") {
  fake_cuda::reset({.devices = 2});
  ok(cudaSetDevice(1));
  pinned<int> host(10);
  on_device<int> device(10);
  int local = 0;
  cudaPointerAttributes a{};
  ok(cudaPointerGetAttributes(&a, host + 5));
  CHECK(a.type == cudaMemoryTypeHost);
  CHECK(a.hostPointer == host + 5);
  ok(cudaPointerGetAttributes(&a, device + 5));
  CHECK(a.type == cudaMemoryTypeDevice);
  CHECK(a.device == 1);
  CHECK(a.devicePointer == device + 5);
  CHECK(a.hostPointer == nullptr);
  ok(cudaPointerGetAttributes(&a, &local));
  CHECK(a.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("cudaMemcpy and cudaMemset use the legacy stream; the copy completes as the runtime documents") {
  for_each_world([](order) {
    pinned<int> source(100), back(100);
    on_device<int> a(100), b(100);
    std::iota(source.data, source.data + 100, 0);
    ok(cudaMemset(b, 0, b.bytes));
    ok(cudaMemcpy(a, source, a.bytes, cudaMemcpyHostToDevice));
    CHECK(a.values()[99] == 99);
    ok(cudaMemcpy(b, a, a.bytes, cudaMemcpyDeviceToDevice));
    ok(cudaMemcpy(back, b, b.bytes, cudaMemcpyDeviceToHost));
    CHECK(back[99] == 99);
  });
  fake_cuda::reset({.when = order::late});
  const own_memory small = pageable(100);
  on_device<unsigned char> target(100);
  ok(cudaMemcpy(target, small.get(), 100, cudaMemcpyHostToDevice));
  CHECK(fake_cuda::pending() == 1);   // staged: the rest may complete later
}

TEST_CASE("memory is limited, for each device and for pinned memory") {
  fake_cuda::reset({.devices = 2, .device_bytes = 1000, .pinned_bytes = 500});
  void* p = nullptr;
  std::size_t free_bytes = 0, total_bytes = 0;
  CHECK(cudaMalloc(&p, 1001) == cudaErrorMemoryAllocation);
  CHECK(p == nullptr);
  on_device<unsigned char> first(600);
  CHECK(cudaMalloc(&p, 401) == cudaErrorMemoryAllocation);
  ok(cudaMemGetInfo(&free_bytes, &total_bytes));
  CHECK(free_bytes == 400);
  CHECK(total_bytes == 1000);
  ok(cudaSetDevice(1));
  on_device<unsigned char> second(1000);
  pinned<unsigned char> host(400);
  CHECK(cudaHostAlloc(&p, 101, cudaHostAllocDefault) == cudaErrorMemoryAllocation);
  const own_memory own = pageable(page);
  CHECK(cudaHostRegister(own.get(), 101, cudaHostRegisterDefault) == cudaErrorMemoryAllocation);
  ok(cudaHostRegister(own.get(), 100, cudaHostRegisterDefault));
  ok(cudaHostUnregister(own.get()));
}
