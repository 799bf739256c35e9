// The entry of every runtime function, and the functions of fake_cuda.hpp.
#include "world.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fake_cuda {
namespace detail {
namespace {

/// Ends the background threads before the process ends.
struct last_one_out {
  ~last_one_out() {
    world& w = the_world();
    if (getpid() != w.process) return;
    const std::lock_guard lock(w.mutex);
    w.stop_threads();
  }
};

}  // namespace

world& the_world() {
  // Never destroyed, because destructors of the program's globals may still call it.
  static world* const only = [] {
    auto* w = new world;
    w->start({});
    return w;
  }();
  static const last_one_out at_exit;
  return *only;
}

thread_state& this_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local thread_state state{.id = ++threads};
  return state;
}

void world::start(const fake_cuda::options& o) {
  options = o;
  random_state = o.seed;
  process = static_cast<int>(getpid());
  start_threads();
}

bool world::refuse_host_function(const char* name) {
  if (!this_thread().inside_kernel) return false;
  const std::lock_guard lock(mutex);   // nobody owns it while the function runs
  violate(std::string(name) + ": called by a host function");
  return true;
}

void world::record_wait(const char* name) {
  ++synchronising;
  if (this_thread().guards > 0) violate(name);
}

/// Errors that the runtime returns before it checks the arguments.
cudaError_t world::refusal(const char* name, const call_traits& traits) {
  cudaError_t injected = cudaSuccess;
  for (auto planned = failures.begin(); planned != failures.end();) {
    if (planned->function == name && --planned->calls_to_go == 0) {
      injected = planned->error;
      planned = failures.erase(planned);
    } else {
      ++planned;
    }
  }
  if (unloaded) return cudaErrorCudartUnloading;
  if (!traits.without_device) {
    if (options.driver_version < CUDART_VERSION) return cudaErrorInsufficientDriver;
    if (options.devices == 0) return cudaErrorNoDevice;
    if (broken != cudaSuccess) return broken;
  }
  return injected;
}

cudaError_t call(const char* name, const call_traits& traits, const call_body& body) {
  const inside here;
  thread_state& me = this_thread();
  const auto remembered = [&me](cudaError_t error) {
    if (error != cudaSuccess) me.last_error = error;
    return error;
  };
  world& w = the_world();
  // Before locking, because in the child of a fork a nonexistent thread may own the lock.
  if (getpid() != w.process) return remembered(cudaErrorInitializationError);
  if (w.refuse_host_function(name)) return remembered(cudaErrorNotPermitted);

  const std::lock_guard lock(w.mutex);
  if (me.generation != w.generation) {
    me = {.id = me.id, .generation = w.generation, .guards = me.guards};
  }
  ++w.calls[name];
  if (traits.synchronises) w.record_wait(name);
  cudaError_t error = w.refusal(name, traits);
  if (error == cudaSuccess && traits.unsafe) {
    error = w.forbid_unsafe();
    if (error != cudaSuccess) return remembered(error);
  }
  if (error == cudaSuccess && !traits.opens_nothing && !traits.without_device && !me.current)
    make_current(me, w.primary_context(me.device));
  if (error == cudaSuccess || traits.releases) {
    const cudaError_t own = body(w);
    if (error == cudaSuccess) error = own;
  }
  w.progress();
  return remembered(error);
}

}  // namespace detail

using detail::the_world;

namespace {

/// Waits a moment for running kernels, then returns the world.
class held_world {
 public:
  detail::world* operator->() { return &world_; }
  detail::world& operator*() { return world_; }

 private:
  detail::world& world_ = the_world();
  std::lock_guard<std::mutex> lock_{world_.mutex};
};

}  // namespace

bool is_inside() noexcept { return detail::inside::depth() > 0; }

void reset(const options& o) {
  held_world w;
  w->stop_threads();
  w->drop_all_work();
  w->stream_of.clear();
  w->legacy_of.clear();
  w->per_thread_of.clear();
  w->event_of.clear();
  w->old_streams.clear();
  w->old_events.clear();
  w->graph_of.clear();
  w->executable_of.clear();
  w->captures.clear();
  w->streams.clear();
  w->allocations.clear();
  w->primary_contexts.clear();
  w->own_contexts.clear();
  w->calls.clear();
  w->synchronising = 0;
  w->violations.clear();
  w->failures.clear();
  w->broken = cudaSuccess;
  w->unloaded = false;
  ++w->generation;
  w->start(o);
}

handles live() {
  held_world w;
  using kind = detail::memory::kind;
  return {.streams = w->stream_of.size(), .events = w->event_of.size(),
          .host_allocations = w->allocations.count(kind::host) + w->allocations.count(kind::registered),
          .device_allocations = w->allocations.count(kind::device),
          .graphs = w->graph_of.size() + w->executable_of.size()};
}

std::vector<host_memory> all_host_memory() {
  held_world w;
  std::vector<host_memory> result;
  for (const auto what : {detail::memory::kind::host, detail::memory::kind::registered})
    for (const auto& a : w->allocations.all(what)) result.push_back({a.address, a.bytes, a.core});
  return result;
}
std::uint64_t calls(std::string_view function) {
  held_world w;
  const auto it = w->calls.find(function);
  return it == w->calls.end() ? 0 : it->second;
}

std::vector<int> contexts() {
  held_world w;
  std::vector<int> devices;
  for (const auto& [device, context] : w->primary_contexts) devices.push_back(device);
  return devices;
}

std::uint64_t synchronising_calls() { return held_world{}->synchronising; }

std::vector<std::string> violations() { return held_world{}->violations; }

void next_kernel(const void* arguments, std::size_t bytes) {
  detail::this_thread().next_is_kernel = true;
  auto& addresses = detail::this_thread().addresses_of_next;
  addresses.resize(bytes / sizeof(void*));
  std::memcpy(addresses.data(), arguments, addresses.size() * sizeof(void*));
}

no_waiting_here::no_waiting_here() { ++detail::this_thread().guards; }
no_waiting_here::~no_waiting_here() { --detail::this_thread().guards; }

void fail(std::string_view function, std::uint64_t nth, cudaError_t error) {
  held_world{}->failures.push_back({std::string(function), nth, error});
}

void break_device(cudaError_t error) {
  held_world w;
  w->broken = error;
  w->drop_all_work();
}

void unload() {
  held_world w;
  w->drop_all_work();
  w->unloaded = true;
}

std::size_t pending() {
  held_world w;
  std::size_t sum = 0;
  for (const auto& s : w->streams) sum += s->queue.size();
  return sum;
}

void run_all() { held_world{}->run_all(); }

const void* peek(const void* device_memory) { return held_world{}->allocations.access(device_memory); }

// The kernel refuses accesses that would fault, which allows a test without a fault.
bool host_can_read(const void* memory) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool can = syscall(SYS_write, ends[1], memory, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

bool host_can_write(void* memory) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  // Writes the unchanged byte.
  const bool can = syscall(SYS_write, ends[1], memory, 1) == 1 && syscall(SYS_read, ends[0], memory, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

}  // namespace fake_cuda
