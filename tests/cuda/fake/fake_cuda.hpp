// The interface of tests to the fake CUDA runtime.
//
//   fake_cuda::reset({.seed = 7, .when = fake_cuda::order::shuffled});
//   run_the_code_under_test();
//   { fake_cuda::no_waiting_here guard; step(); }            // a call that waits or allocates is a violation
//   CHECK(fake_cuda::violations().empty());
//   CHECK(fake_cuda::live() == fake_cuda::handles{});         // everything was released
//
// How it works. Streams are queues of operations. Without background threads, the runtime calls of the program run the
// operations on the calling thread. `late` runs an operation only when a call waits for it (or has queried it `polls`
// times), and only the operations that it depends on. `early` runs all legal operations at once. `shuffled` runs a
// random number of random legal steps in each call, where a step of a copy is one piece of it. With background threads,
// these run all operations. "Legal" means that the order of streams, events and the legacy stream is respected.
//
// Immediate faults (SIGSEGV): a host write to the source of a copy in progress (full pages; for registered memory only
// those inside the range), a host access to device memory while no kernel runs, and any use of freed memory. Filled
// with 0xA5 bytes: fresh memory, and the destination of a copy from the moment when it may begin until each piece
// arrives.
// Not detected: host accesses to device memory while a kernel runs on that device (its pages are open then), kernels
// that use memory of the right device out of order (except by wrong values), overruns that end within the last page
// (detected when the memory is freed) or start in a page of another allocation, and timing problems.
//
// Allocating, registering and freeing do not wait, because the real calls may not wait either. Freeing memory that a
// copy in progress or a kernel uses is a violation. Which memory a kernel uses is known from next_kernel().
//
// A "kernel" is a function passed to cudaLaunchHostFunc after next_kernel(); other such functions are host functions.
// Both run without the lock, and may be slow. A call of CUDA inside them fails, and is a violation. Unlike real host
// functions, they are refused on a stream of a device that is not current, and may access the memory of the device.
// As in the real runtime, one thread runs all host functions, one at a time. Without background threads, a kernel runs
// on the calling thread, and the calling thread waits for a host function. Neither may wait for the calling thread.
//
// As in the real runtime, the next stream or event has the handle of the one that was destroyed last. Until then, the
// use of that handle is a violation.
// The rules are those of NVIDIA's runtime API reference and programming guide. If they are ambiguous, the fake runtime
// uses the stricter interpretation: a captured stream's wait for an event that was never recorded breaks isolation, a
// query of a captured event invalidates its capture, cudaErrorNotReady remains as the last error, and a cudaMemcpy from
// pageable memory may return before the bytes reach the device. A seed reproduces its schedule only if one thread makes
// all calls and there are no background threads.
//
// Threads: every function may be called from any thread. reset() waits for running kernels, and must not run
// concurrently with other calls. After reset(), calls with old handles fail with cudaErrorInvalidResourceHandle.
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
  int background_threads = 0;                       ///< 0: the program's own calls run the operations
  bool null_per_thread = false;                     ///< as in a program built with --default-stream per-thread
  int polls = 4;                                    ///< late: an operation runs after this number of queries
  int driver_version = CUDART_VERSION;              ///< lower: cudaErrorInsufficientDriver; 0: no driver at all
  std::size_t device_bytes = std::size_t{16} << 30;   ///< of each device; cudaMalloc fails above it
  std::size_t pinned_bytes = std::size_t{16} << 30;   ///< of the process, for cudaHostAlloc and -Register
  bool host_page_tables = false;   ///< as on GH200: registering memory does not pin it
  std::size_t queue_depth = 0;     ///< a call waits while its stream has this many operations; 0: unlimited
  bool pageable_waits = false;     ///< a copy from pageable memory waits for the earlier work of its stream
};

/// Resets the fake runtime: no objects, no calls so far, no current devices.
void reset(const options& o = {});

/// Whether this thread is inside a function of the fake runtime, which needs memory although the real one does not.
bool is_inside() noexcept;

/// Objects that were created and not released.
struct handles {
  std::size_t streams = 0, events = 0, host_allocations = 0, device_allocations = 0, graphs = 0;
  bool operator==(const handles&) const = default;
};
handles live();

/// Pinned or registered memory, and the core of the call.
struct host_memory {
  const void* address = nullptr;
  std::size_t bytes = 0;
  int core = -1;
};
std::vector<host_memory> all_host_memory();
/// Calls since reset(), by the function's name, and of all functions that wait or may wait.
std::uint64_t calls(std::string_view function);
std::uint64_t synchronising_calls();

/// The devices with a primary context of this process, in ascending order. cudaSetDevice() creates one, and so does
/// every call that uses the current device. Calls about a numbered device or about errors do not.
std::vector<int> contexts();
/// Another context of the device, as from cuCtxCreate(), but not current. Streams and events can be used in their own
/// context only, and the runtime does not report the device of its memory.
void* create_context(int device);
/// The current context of the calling thread, as with cuCtxSetCurrent() and cuCtxGetCurrent(); null: none.
void set_current_context(void* context);
void* current_context();

/// Violations in order: waits under a guard, memory freed during a copy, writes past an end.
std::vector<std::string> violations();

/// The next kernel of this thread uses all memory whose address is in the arguments.
void next_kernel(const void* arguments, std::size_t bytes);

/// During its lifetime, calls of this thread that wait, allocate, register or free are violations. They still work.
class no_waiting_here {
 public:
  no_waiting_here();
  ~no_waiting_here();
  no_waiting_here(const no_waiting_here&) = delete;
  no_waiting_here& operator=(const no_waiting_here&) = delete;
};

/// The nth next call of the function (1: the next) fails once. Functions that release something still release it.
void fail(std::string_view function, std::uint64_t nth, cudaError_t error);
/// Simulates an illegal address: pending work is dropped, and every call returns `error` until reset(). Destroying and
/// freeing still succeed in live().
void break_device(cudaError_t error);
/// Simulates the end of the process: every call returns cudaErrorCudartUnloading.
void unload();

/// The number of enqueued operations that have not run.
std::size_t pending();
/// Runs all of them.
void run_all();

/// The address at which a test may read device memory. Any other address is returned unchanged.
const void* peek(const void* device_memory);
template <typename T>
const T* peek(const T* device_memory) {
  return static_cast<const T*>(peek(static_cast<const void*>(device_memory)));
}

/// Whether the host may access this byte now without a fault.
bool host_can_read(const void* memory);
bool host_can_write(void* memory);

/// The bytes of fresh memory and destinations.
inline constexpr unsigned char poison = 0xA5;

}  // namespace fake_cuda
