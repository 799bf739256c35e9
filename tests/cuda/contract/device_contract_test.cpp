// The contract of cuda_device. Compiled with the fake runtime and the real one.
#include "contract.hpp"

#include <millrace/device/best_device.hpp>

#include <cstdlib>
#include <string>

namespace mr = millrace;
using contract::ok;

namespace {

constexpr std::size_t page = 4096;

/// One slot on either side, with the operations of a stager.
struct one_slot {
  explicit one_slot(std::size_t bytes_of = page)
      : bytes(bytes_of),
        host(static_cast<unsigned char*>(backend->allocate_host(bytes))),
        device(static_cast<unsigned char*>(backend->allocate_device(bytes))) {}
  one_slot(const one_slot&) = delete;
  one_slot& operator=(const one_slot&) = delete;
  ~one_slot() {
    backend->wait(*copied);
    backend->free_host(host);
    backend->free_device(device);
  }
  void copy(int value) {
    std::memset(host, value, bytes);
    backend->copy_to_device(device, host, bytes);
    backend->record_copy(*copied);
  }

  std::shared_ptr<mr::device_backend> backend = mr::cuda_device(0).backend();
  std::size_t bytes;
  unsigned char* host;
  unsigned char* device;
  std::unique_ptr<mr::device_event> copied = backend->make_event();
};

}  // namespace

TEST_CASE("device: it has a name, its own memory, and no leases of host slots") {
  contract::start();
  const auto gpu = mr::cuda_device(0);
  CHECK(gpu.name().starts_with("cuda:0 ("));
  CHECK(gpu.backend()->memory() == mr::memory_kind::device);
  CHECK_FALSE(gpu.backend()->leases_host_slots());
}

TEST_CASE("device: a missing device is refused with the number of devices") {
  contract::start();
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  CHECK(mr::cuda_device_count() == count);
  const std::string there = "this process sees " + std::to_string(count);
  for (const int ordinal : {-1, count, 1'000})
    CHECK_THROWS_WITH_AS(mr::cuda_device(ordinal), doctest::Contains(there.c_str()), mr::setup_error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("device: host slots are pinned, device slots are on the device, both aligned for vectors") {
  contract::start();
  const one_slot slot;
  cudaPointerAttributes attributes{};
  ok(cudaPointerGetAttributes(&attributes, slot.host));
  CHECK(attributes.type == cudaMemoryTypeHost);
  ok(cudaPointerGetAttributes(&attributes, slot.device));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(reinterpret_cast<std::uintptr_t>(slot.host) % 256 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(slot.device) % 256 == 0);
}

TEST_CASE("device: copies are exact at any size") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{255}, page, 3 * page + 17, std::size_t{1} << 20}) {
    contract::start(bytes);
    one_slot slot(bytes);
    for (std::size_t i = 0; i < bytes; ++i) slot.host[i] = static_cast<unsigned char>(i * 31 + i / 251);
    slot.backend->copy_to_device(slot.device, slot.host, bytes);
    slot.backend->record_copy(*slot.copied);
    slot.backend->wait(*slot.copied);
    const auto there = contract::read_back(slot.device, bytes);
    CHECK(std::memcmp(there.data(), slot.host, bytes) == 0);
  }
}

TEST_CASE("device: a copy waits, on the device, for the event of the slot's last use; the call returns at once") {
  contract::start();
  one_slot slot;
  const contract::stream step;
  slot.copy(1);
  slot.backend->wait(*slot.copied);
  const auto released = slot.backend->make_event();
  contract::stream_block block(step);
  slot.backend->record(*released, step);
  slot.backend->copy_waits_for(*released);
  slot.copy(2);
  CHECK_FALSE(block.is_over());
  contract::pause();
  CHECK(contract::all_are(contract::read_back(slot.device, page), 1));
  block.unblock();
  slot.backend->wait(*slot.copied);
  CHECK(contract::all_are(contract::read_back(slot.device, page), 2));
}

TEST_CASE("device: the step's stream waits for the copy; the call returns at once") {
  contract::start();
  one_slot slot;
  const contract::stream user, step;
  const auto before = slot.backend->make_event();
  const auto copy = contract::make_pinned(page);
  contract::stream_block block(user);
  slot.backend->record(*before, user);
  slot.backend->copy_waits_for(*before);   // so the copy is delayed
  slot.copy(3);
  slot.backend->stream_waits_for(step, *slot.copied);
  ok(cudaMemcpyAsync(copy.get(), slot.device, page, cudaMemcpyDeviceToHost, step));
  CHECK_FALSE(block.is_over());
  block.unblock();
  step.synchronize();
  CHECK(contract::all_are(copy.get(), page, 3));
}

TEST_CASE("device: a copy does not wait for the legacy stream, and does not delay it") {
  contract::start();
  one_slot slot;
  std::atomic<bool> done{false};
  std::jthread waits;   // so that a copy that waits is a failed check, not a hang
  contract::stream_block block(cudaStreamLegacy);
  slot.copy(4);
  waits = std::jthread([&] {
    slot.backend->wait(*slot.copied);
    done = true;
  });
  for (int i = 0; i < 500 && !done; ++i) contract::pause();
  CHECK(done);
  CHECK_FALSE(block.is_over());
}

TEST_CASE("device: an empty stream handle is the legacy stream") {
  contract::start();
  one_slot slot;
  const auto released = slot.backend->make_event();
  contract::stream_block block(cudaStreamLegacy);
  slot.backend->record(*released, {});
  slot.backend->copy_waits_for(*released);
  slot.copy(5);
  contract::pause();
  CHECK_FALSE(block.is_over());
  std::atomic<bool> done{false};
  std::thread waits([&] {
    slot.backend->wait(*slot.copied);
    done = true;
  });
  contract::pause();
  CHECK_FALSE(done);
  block.unblock();
  waits.join();
}

TEST_CASE("device: each call restores the caller's current device") {
  contract::start(1, 2);
  if (!contract::second_device()) return;
  ok(cudaSetDevice(1));
  const auto theirs = [] {
    int device = -1;
    ok(cudaGetDevice(&device));
    return device == 1;
  };
  {
    one_slot slot;
    CHECK(theirs());
    slot.copy(1);
    CHECK(theirs());
    slot.backend->stream_waits_for({}, *slot.copied);
    CHECK(theirs());
    const auto released = slot.backend->make_event();
    slot.backend->record(*released, {});
    slot.backend->copy_waits_for(*released);
    slot.backend->wait(*slot.copied);
    CHECK(theirs());
    CHECK(contract::all_are(contract::read_back(slot.device, page), 1));
  }
  CHECK(theirs());
  CHECK_THROWS_AS(mr::cuda_device(1'000), mr::setup_error);
  CHECK(theirs());
  ok(cudaSetDevice(0));
}

TEST_CASE("device: memory, events and the legacy stream belong to the device, not to the caller's current one") {
  contract::start(1, 2);
  if (!contract::second_device()) return;
  const contract::stream user;   // of device 0, as the slot
  const contract::event passed;
  ok(cudaSetDevice(1));
  {
    one_slot slot;
    cudaPointerAttributes attributes{};
    ok(cudaPointerGetAttributes(&attributes, slot.device));
    CHECK(attributes.device == 0);
    const auto before = slot.backend->make_event();
    ok(cudaSetDevice(0));
    contract::stream_block block(user);
    ok(cudaSetDevice(1));
    slot.backend->record(*before, static_cast<cudaStream_t>(user));
    slot.backend->copy_waits_for(*before);   // so the copy is delayed
    slot.copy(1);
    slot.backend->stream_waits_for({}, *slot.copied);
    ok(cudaSetDevice(0));
    ok(cudaEventRecord(passed, cudaStreamLegacy));
    contract::pause();
    CHECK_FALSE(passed.reached());
    block.unblock();
    ok(cudaEventSynchronize(passed));

    const contract::stream blocking(cudaStreamDefault);
    ok(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
    ok(cudaSetDevice(1));
    CHECK_THROWS_AS(slot.backend->check_stream({}), mr::setup_error);   // device 0's, which that capture forbids
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(blocking, &graph));
    ok(cudaGraphDestroy(graph));
  }
  ok(cudaSetDevice(0));
}

TEST_CASE("device: each call restores the caller's capture mode") {
  contract::start();
  const auto still = [](cudaStreamCaptureMode theirs) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    const cudaStreamCaptureMode current = mode;
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    return current == theirs;
  };
  for (const auto theirs : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeGlobal}) {
    cudaStreamCaptureMode mode = theirs;
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    {
      one_slot slot;
      CHECK(still(theirs));
      slot.copy(1);
      slot.backend->stream_waits_for({}, *slot.copied);
      slot.backend->check_stream({});
      slot.backend->wait(*slot.copied);
      CHECK(still(theirs));
    }
    CHECK(still(theirs));
  }
}

TEST_CASE("device: a stream that is being captured is refused by name, and its capture continues") {
  contract::start();
  one_slot slot;
  const contract::stream step(cudaStreamDefault);
  ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeGlobal));
  CHECK_THROWS_WITH_AS(slot.backend->check_stream(step), doctest::Contains("being captured"),
                       mr::setup_error);
  CHECK_THROWS_AS(slot.backend->check_stream({}), mr::setup_error);   // the legacy stream would join a blocking stream
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(step, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  slot.backend->check_stream(step);
  slot.backend->check_stream({});
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("device: creating and freeing slots, copying and waiting do not affect a capture of another thread") {
  contract::start();
  const contract::stream step;
  ok(cudaStreamBeginCapture(step, cudaStreamCaptureModeGlobal));
  std::string failed;
  std::thread([&] {
    try {
      one_slot slot;
      slot.copy(1);
      slot.backend->wait(*slot.copied);
    } catch (const mr::error& e) {
      failed = e.what();
    }
  }).join();
  CHECK(failed == "");
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(step, &graph) == cudaSuccess);
  if (graph) cudaGraphDestroy(graph);
}

TEST_CASE("device: the error of a refused call names the call and CUDA's reason, and is not the caller's last error") {
  contract::start();
  const auto backend = mr::cuda_device(0).backend();
  try {
    backend->allocate_device(std::size_t{1} << 60);
    FAIL("no error");
  } catch (const mr::io_error& e) {
    CHECK(std::string(e.what()).find("cudaMalloc failed: cudaErrorMemoryAllocation") != std::string::npos);
    CHECK(e.hint().find("to_device({.slots})") != std::string::npos);
  }
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("device: the best one is the GPU of this process's local rank") {
  contract::start(1, 3);
  int count = 0;
  ok(cudaGetDeviceCount(&count));
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                           "SLURM_LOCALID"}) {
    for (const int rank : {0, 1, 2, 5}) {
      ::setenv(name, std::to_string(rank).c_str(), 1);
      CHECK(mr::best_device().name().starts_with("cuda:" + std::to_string(rank % count) + " "));
    }
    for (const char* nonsense : {"", "-1", "two", "1x"}) {
      ::setenv(name, nonsense, 1);
      CHECK(mr::best_device().name().starts_with("cuda:0 "));
    }
    ::unsetenv(name);
  }
  CHECK(mr::best_device().name().starts_with("cuda:0 "));
}
