// What a test says to the stand-in for the CUDA runtime, and what it asks it afterwards.
//
//   fake_cuda::reset({.seed = 7, .when = fake_cuda::order::shuffled});
//   run_the_code_under_test();
//   { fake_cuda::no_waiting_here guard; step(); }            // a call that waits or allocates is a violation
//   CHECK(fake_cuda::violations().empty());
//   CHECK(fake_cuda::live() == fake_cuda::handles{});         // everything was given back
//
// How it works. Streams are queues of operations. Without background threads work is done inside the runtime calls of
// the program, on the calling thread: `late` does an operation only when somebody waits for it (or has asked for it
// `polls` times) and nothing that this one does not need; `early` does everything that is legal at once; `shuffled`
// does a random number of random legal steps at each call, where a step of a copy is one piece of it. With background
// threads these do the work and calls do none. "Legal" is what the streams, events and the legacy stream demand.
//
// What faults on the spot (SIGSEGV): the host writing to the source of a copy that is under way (whole pages; of
// registered memory only those that lie within the range), the host touching device memory while no kernel runs, and
// any use of memory that was freed. What shows as 0xA5 bytes: fresh memory, and the destination of a copy from the
// moment when it may begin until each piece has landed.
// What it cannot catch: the host touching device memory while a kernel runs on that device (the pages are open then),
// kernels that use memory of the right device out of order (but values tell), an overrun that ends within the last page
// (found when the memory is freed) or starts in a page that is also another's, and anything about speed.
//
// Allocating and registering wait for nothing, as the real calls may not either; freeing waits for all devices.
//
// A "kernel" is a function given to cudaLaunchHostFunc; it runs without the lock, may take its time, and must make no
// CUDA call. Like a kernel, and unlike a real host function, it is refused on a stream of a device that is not current.
// Without background threads it runs on the thread that makes the call, so it must not wait for that thread.
// The rules are those of NVIDIA's runtime API reference and programming guide. Where these are silent the stricter
// reading was chosen, so that code which passes here has no need of luck: a captured stream's wait for an event that
// was never recorded breaks isolation, asking for a captured event spoils its capture, cudaErrorNotReady stays behind
// as the last error, a cudaMemcpy from pageable memory may return before the bytes have reached the device. A seed
// repeats its schedule only where one thread makes all calls and none works in the background.
//
// Threads: every function may be called from any; reset() waits for kernels that run, and no other call may be under
// way. Handles that live across reset() are gone: calls with them fail with cudaErrorInvalidResourceHandle.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fake_cuda {

enum class order { late, early, shuffled };

struct options {
  std::uint64_t seed = 1;
  int devices = 1;
  order when = order::shuffled;
  int background_threads = 0;                       ///< 0: work is done inside the program's own calls
  bool null_per_thread = false;                     ///< as in a program built with --default-stream per-thread
  int polls = 4;                                    ///< late: so many queries of one thing and it is done
  int driver_version = CUDART_VERSION;              ///< lower: cudaErrorInsufficientDriver; 0: no driver at all
  std::size_t device_bytes = std::size_t{16} << 30;   ///< of each device; cudaMalloc fails above it
  std::size_t pinned_bytes = std::size_t{16} << 30;   ///< of the process, for cudaHostAlloc and -Register
};

/// A new world: nothing lives, nothing was called, no thread has chosen a device.
void reset(const options& o = {});

/// What was made and not given back.
struct handles {
  std::size_t streams = 0, events = 0, host_allocations = 0, device_allocations = 0, graphs = 0;
  bool operator==(const handles&) const = default;
};
handles live();

/// Calls since reset(), by the function's name, and of all functions that wait or may wait.
std::uint64_t calls(std::string_view function);
std::uint64_t synchronising_calls();

/// What was forbidden and happened: waits under a guard, memory freed under a copy, writes past an end. In order.
std::vector<std::string> violations();

/// While one lives, a call of this thread that waits, allocates, registers or frees is a violation. It still works.
class no_waiting_here {
 public:
  no_waiting_here();
  ~no_waiting_here();
  no_waiting_here(const no_waiting_here&) = delete;
  no_waiting_here& operator=(const no_waiting_here&) = delete;
};

/// The nth call of the function from now on (1: the next) fails, once. A function that releases something releases it.
void fail(std::string_view function, std::uint64_t nth, cudaError_t error);
/// As after an illegal address: pending work is dropped, and every call gives `error` until reset(). Destroying and
/// freeing still counts as done.
void break_device(cudaError_t error);
/// The process is about to end: every call gives cudaErrorCudartUnloading.
void unload();

/// Operations that were enqueued and have not been done.
std::size_t pending();
/// Does them all.
void run_all();

/// Where a test may read what device memory holds now. Any other address is returned as it is.
const void* peek(const void* device_memory);
template <typename T>
const T* peek(const T* device_memory) {
  return static_cast<const T*>(peek(static_cast<const void*>(device_memory)));
}

/// Whether the host could touch this byte now, or would fault.
bool host_can_read(const void* memory);
bool host_can_write(void* memory);

/// What fresh memory and destinations hold.
inline constexpr unsigned char poison = 0xA5;

}  // namespace fake_cuda
