// The state of the fake runtime: streams, events, captures, memory, and the scheduler. One lock protects it.
//
//   return call("cudaStreamDestroy", {.releases = true}, [&](world& w) { return w.destroy_stream(stream); });
//
// call() is the entry of every runtime function: it counts the call, refuses it if the runtime would, runs the body
// under the lock, lets the scheduler run some operations, and stores the error for cudaGetLastError.
// Callers of members own the lock; run_head() releases it while a kernel runs, and wait_for() while it waits.
#pragma once

#include "fake_cuda.hpp"
#include "memory.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace fake_cuda::detail {

struct stream;
struct capture;

/// A primary context, or one of the program.
struct context {
  int device = 0;
  bool primary = true;
};

/// An operation without its state, also used in graphs.
struct work {
  enum class kind { copy, fill, record, wait, kernel };
  kind what = kind::wait;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  int value = 0;
  cudaHostFn_t function = nullptr;
  void* argument = nullptr;
  bool is_host_function = false;               ///< not a kernel: runs on the thread for host functions
  std::vector<const std::byte*> addresses{};   ///< that a kernel has
};

/// Work in a stream. It can run at the head of the stream after all operations in `after`.
struct operation {
  work todo;
  stream* on = nullptr;
  std::vector<std::shared_ptr<operation>> after{};
  std::vector<std::byte> staged{};       ///< content of a pageable source when the copy was enqueued
  std::vector<std::uint32_t> pieces{};   ///< of a copy: the remaining ones, the next one last
  bool begun = false, done = false, holds_source = false;
  int polls = 0;
  std::int64_t done_at_ns = 0;
};
using operation_pointer = std::shared_ptr<operation>;
using operations = std::vector<operation_pointer>;

/// The dependencies of one piece of work.
struct work_extra {
  std::vector<std::byte> staged{};
  operations after{};
};

struct stream : std::enable_shared_from_this<stream> {
  int device = 0;
  const context* in = nullptr;
  bool blocking = true, legacy = false, destroyed = false;
  bool busy = false;                       ///< its head is a running kernel
  std::deque<operation_pointer> queue{};
  std::shared_ptr<capture> capturing{};
  std::vector<std::size_t> capture_tail{}; ///< predecessors of the next captured operation
};
using stream_pointer = std::shared_ptr<stream>;

struct event {
  const context* in = nullptr;
  unsigned int flags = 0;
  operation_pointer recorded{};            ///< null: never
  std::shared_ptr<capture> captured{};     ///< the capture in which it was last recorded
  std::vector<std::size_t> captured_after{};
};

struct capture {
  struct node {
    work todo;
    std::vector<std::size_t> after;
  };
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::uint64_t thread = 0;
  stream* origin = nullptr;
  bool invalidated = false, ended = false;
  std::vector<node> nodes{};
};

/// An executable graph with its last launch: its launches run one at a time.
struct graph {
  std::vector<work> nodes{};
  operation_pointer last_launch{};
};

/// The state of one thread of the program. reset() discards it.
struct thread_state {
  std::uint64_t id = 0, generation = 0;
  int chosen_device = 0;                     ///< by cudaSetDevice()
  int device = 0;                            ///< of the current context, or the chosen one
  const context* current = nullptr;
  std::vector<const context*> pushed{};      ///< the previous ones
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  cudaError_t last_error = cudaSuccess;
  bool inside_kernel = false;
  int guards = 0;
  bool next_is_kernel = false;
  std::vector<const std::byte*> addresses_of_next{};   ///< of the next kernel
};
thread_state& this_thread();
/// Sets the current context of a thread; null: none.
void make_current(thread_state& thread, const context* c);

struct call_traits {
  bool synchronises = false;   ///< waits, may wait, or allocates
  bool unsafe = false;         ///< "potentially unsafe" while a stream is captured
  bool releases = false;       ///< releases its argument even if it reports an error
  bool without_device = false; ///< works without a device or a driver
  bool opens_nothing = false;  ///< does not create a context on the current device
};

class world {
 public:
  // scheduler.cpp
  operation_pointer enqueue(stream& s, const work& todo, work_extra extra);
  void wait_for(const operations& targets);
  /// Returns whether it is pending, and counts the query.
  bool is_done(const operations& targets);
  void progress();
  void run_all();
  void drop_all_work();
  operations unfinished_of(const stream& s) const;
  operations all_unfinished() const;
  /// Returns whether an unfinished kernel has an address in this memory.
  bool kernel_uses(const memory::allocation& a) const;
  void start_threads();
  void stop_threads();

  // capture.cpp
  /// Appends work to a stream, or to the graph that is captured from it.
  cudaError_t submit(stream& s, const work& todo, work_extra extra = {});
  cudaError_t forbid_unsafe();
  std::vector<capture*> captures_beside(const stream& s) const;
  cudaError_t forbid_legacy(const stream& s);
  /// For calls that query or wait for a complete stream: none of its work may be captured.
  cudaError_t forbid_unordered(const stream& s);
  void invalidate(capture& c);
  cudaError_t record(event& e, stream& s);
  cudaError_t stream_waits(stream& s, event& e);
  cudaError_t end_capture(stream& s, cudaGraph_t* result);
  cudaError_t launch(graph& g, stream& s);

  // streams.cpp
  stream_pointer find_stream(cudaStream_t handle);
  stream_pointer make_stream(bool blocking, bool legacy);
  event* find_event(cudaEvent_t handle);

  // devices.cpp
  /// Returns the primary context of the device, which now exists.
  const context* primary_context(int device);
  const context* make_context(int device);

  // world.cpp
  void start(const fake_cuda::options& o);
  cudaError_t refusal(const char* name, const call_traits& traits);
  void record_wait(const char* name);
  /// A violation if this thread is inside a kernel or a host function, which must not call CUDA.
  bool refuse_host_function(const char* name);
  void violate(std::string what) { violations.push_back(std::move(what)); }

  std::mutex mutex;
  std::condition_variable changed;   // an operation completed or may begin, or the threads must end
  std::atomic<int> process{0};       // the process of this world, which differs in the child of a fork
  std::atomic<std::uint64_t> generation{1};
  fake_cuda::options options;
  std::uint64_t random_state = 1;
  std::uint64_t random(std::uint64_t below);

  memory allocations;
  std::vector<stream_pointer> streams;   // all existing ones, and those with work
  std::map<cudaStream_t, stream_pointer> stream_of;
  std::map<const context*, stream_pointer> legacy_of;
  std::map<std::pair<std::uint64_t, const context*>, stream_pointer> per_thread_of;
  std::map<cudaEvent_t, event> event_of;
  std::map<cudaGraph_t, graph> graph_of;
  std::map<cudaGraphExec_t, graph> executable_of;
  std::vector<std::shared_ptr<capture>> captures;   // those in progress
  std::uintptr_t next_handle = 0x10000;
  std::vector<cudaStream_t> old_streams;   // destroyed; the last one is reused first, as by the driver
  std::vector<cudaEvent_t> old_events;
  template <typename Handle>
  Handle new_handle() {
    return reinterpret_cast<Handle>(next_handle += 16);   // unique, so that old handles stay invalid
  }
  template <typename Handle>
  Handle new_handle(std::vector<Handle>& old) {
    if (old.empty()) return new_handle<Handle>();
    const Handle handle = old.back();
    old.pop_back();
    return handle;
  }

  std::map<int, context> primary_contexts;
  std::list<context> own_contexts;   // of the program
  std::map<std::string, std::uint64_t, std::less<>> calls;
  std::uint64_t synchronising = 0;
  std::vector<std::string> violations;
  struct planned_failure {
    std::string function;
    std::uint64_t calls_to_go = 0;
    cudaError_t error = cudaSuccess;
  };
  std::vector<planned_failure> failures;
  cudaError_t broken = cudaSuccess;
  bool unloaded = false;

 private:
  stream_pointer runnable();
  stream_pointer needed_for(operation_pointer target);
  void run_head(const stream_pointer& s, bool complete);
  bool move_bytes(operation& op, bool complete);
  void run_kernel(stream& s, const operation& op);
  void run_host_function(const work& todo);
  void host_functions();
  bool can_run(const stream& s) const;
  void finish(stream& s);
  void settle_operation(operation& op);
  void begin(operation& op);
  void begin_heads();
  void background();

  std::vector<std::thread> threads_;
  std::thread host_thread_;            // of all host functions
  const work* host_function_ = nullptr;   // running, or about to
  bool stopping_ = false;
  int waiting_ = 0, busy_ = 0;
};

world& the_world();

/// is_inside() during its lifetime.
class inside {
 public:
  inside() noexcept { ++depth(); }
  ~inside() { --depth(); }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  static int& depth() noexcept {
    thread_local int of_this_thread = 0;
    return of_this_thread;
  }
};

/// A reference to a function object, which must outlive it.
class call_body {
 public:
  template <class Function>
  call_body(const Function& f) noexcept : function_(&f), call_([](const void* function, world& w) {
    return (*static_cast<const Function*>(function))(w);
  }) {}
  cudaError_t operator()(world& w) const { return call_(function_, w); }

 private:
  const void* function_;
  cudaError_t (*call_)(const void*, world&);
};
cudaError_t call(const char* name, const call_traits& traits, const call_body& body);

}  // namespace fake_cuda::detail
