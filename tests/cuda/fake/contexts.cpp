// Contexts, and the functions of the driver that the runtime returns.
#include "world.hpp"

#include <unistd.h>

#include <string_view>

namespace fake_cuda {
namespace detail {

void make_current(thread_state& thread, const context* c) {
  thread.current = c;
  thread.device = c ? c->device : thread.chosen_device;
}

const context* world::primary_context(int device) {
  return &primary_contexts.try_emplace(device, context{.device = device}).first->second;
}

const context* world::make_context(int device) {
  return &own_contexts.emplace_back(context{.device = device, .primary = false});
}

namespace {

/// A function of the driver. Unlike the runtime, the driver does not remember errors.
template <class Body>
cudaError_t driver_call(const char* name, const Body& body) {
  const inside here;
  world& w = the_world();
  if (getpid() != w.process) return cudaErrorInitializationError;
  if (w.refuse_host_function(name)) return cudaErrorNotPermitted;
  const std::lock_guard lock(w.mutex);
  thread_state& me = this_thread();
  if (me.generation != w.generation) me = {.id = me.id, .generation = w.generation, .guards = me.guards};
  ++w.calls[name];
  if (const cudaError_t refused = w.refusal(name, {.without_device = true}); refused != cudaSuccess) return refused;
  return body(w, me);
}

cudaError_t init(unsigned) {
  return driver_call("cuInit", [](world&, thread_state&) { return cudaSuccess; });
}

cudaError_t retain_primary(void** context, int device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&](world& w, thread_state&) {
    if (device < 0 || device >= w.options.devices) return cudaErrorInvalidDevice;
    *context = const_cast<detail::context*>(w.primary_context(device));
    return cudaSuccess;
  });
}

cudaError_t primary_state(int device, unsigned* flags, int* active) {
  return driver_call("cuDevicePrimaryCtxGetState", [&](world& w, thread_state&) {
    *flags = 0;
    *active = w.primary_contexts.count(device) > 0;
    return cudaSuccess;
  });
}

cudaError_t get_current(void** context) {
  return driver_call("cuCtxGetCurrent", [&](world&, thread_state& me) {
    *context = const_cast<detail::context*>(me.current);
    return cudaSuccess;
  });
}

cudaError_t push(void* context) {
  return driver_call("cuCtxPushCurrent", [&](world&, thread_state& me) {
    me.pushed.push_back(me.current);
    make_current(me, static_cast<const detail::context*>(context));
    return cudaSuccess;
  });
}

cudaError_t pop(void** context) {
  return driver_call("cuCtxPopCurrent", [&](world&, thread_state& me) {
    if (me.pushed.empty()) return cudaErrorDeviceUninitialized;
    *context = const_cast<detail::context*>(me.current);
    make_current(me, me.pushed.back());
    me.pushed.pop_back();
    return cudaSuccess;
  });
}

void* driver_function(std::string_view name) {
  if (name == "cuInit") return reinterpret_cast<void*>(&init);
  if (name == "cuDevicePrimaryCtxRetain") return reinterpret_cast<void*>(&retain_primary);
  if (name == "cuDevicePrimaryCtxGetState") return reinterpret_cast<void*>(&primary_state);
  if (name == "cuCtxGetCurrent") return reinterpret_cast<void*>(&get_current);
  if (name == "cuCtxPushCurrent") return reinterpret_cast<void*>(&push);
  if (name == "cuCtxPopCurrent") return reinterpret_cast<void*>(&pop);
  return nullptr;
}

}  // namespace
}  // namespace detail

using detail::the_world;

void* create_context(int device) {
  detail::world& w = the_world();
  const std::lock_guard lock(w.mutex);
  return const_cast<detail::context*>(w.make_context(device));
}

void set_current_context(void* context) {
  detail::driver_call("cuCtxSetCurrent", [&](detail::world&, detail::thread_state& me) {
    detail::make_current(me, static_cast<const detail::context*>(context));
    return cudaSuccess;
  });
}

void* current_context() {
  void* context = nullptr;
  detail::get_current(&context);
  return context;
}

}  // namespace fake_cuda

using namespace fake_cuda::detail;

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  return call("cudaGetDriverEntryPointByVersion", {.opens_nothing = true}, [&](world&) {
    if (!symbol || !function || flags != cudaEnableDefault) return cudaErrorInvalidValue;
    *function = version >= 7'000 ? driver_function(symbol) : nullptr;
    if (status) *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
