// Streams, events, and kernels of the host.
#include "world.hpp"

#include <algorithm>
#include <utility>

namespace fake_cuda::detail {

stream_pointer world::make_stream(bool blocking, bool legacy) {
  auto s = std::make_shared<stream>();
  s->device = this_thread().device;
  s->in = this_thread().current;
  s->blocking = blocking;
  s->legacy = legacy;
  streams.push_back(s);
  return s;
}

/// Null if the stream does not exist. A default stream is the current context's.
stream_pointer world::find_stream(cudaStream_t handle) {
  const thread_state& me = this_thread();
  if (handle == nullptr) handle = options.null_per_thread ? cudaStreamPerThread : cudaStreamLegacy;
  if (handle == cudaStreamLegacy) {
    stream_pointer& s = legacy_of[me.current];
    if (!s) s = make_stream(true, true);
    return s;
  }
  if (handle == cudaStreamPerThread) {
    stream_pointer& s = per_thread_of[{me.id, me.current}];
    if (!s) s = make_stream(true, false);
    return s;
  }
  const auto it = stream_of.find(handle);
  if (it != stream_of.end()) return it->second;
  if (std::find(old_streams.begin(), old_streams.end(), handle) != old_streams.end())
    violate("a stream was used after it was destroyed");
  return nullptr;
}

event* world::find_event(cudaEvent_t handle) {
  const auto it = event_of.find(handle);
  if (it != event_of.end()) return &it->second;
  if (std::find(old_events.begin(), old_events.end(), handle) != old_events.end())
    violate("an event was used after it was destroyed");
  return nullptr;
}

}  // namespace fake_cuda::detail

using namespace fake_cuda::detail;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return call("cudaStreamCreateWithFlags", {}, [&](world& w) {
    if (!stream || (flags & ~unsigned{cudaStreamNonBlocking})) return cudaErrorInvalidValue;
    *stream = w.new_handle(w.old_streams);
    w.stream_of[*stream] = w.make_stream(!(flags & cudaStreamNonBlocking), false);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", {.releases = true}, [&](world& w) {
    const stream_pointer s = w.find_stream(stream);
    if (!s || !w.stream_of.erase(stream)) return cudaErrorInvalidResourceHandle;
    if (s->capturing) w.invalidate(*s->capturing);
    w.old_streams.push_back(stream);
    s->destroyed = true;   // its work still runs
    if (s->queue.empty()) std::erase(w.streams, s);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", {}, [&](world& w) {
    const stream_pointer s = w.find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = w.forbid_unordered(*s); error != cudaSuccess) return error;
    const bool done = w.is_done(w.unfinished_of(*s));
    return w.broken != cudaSuccess ? w.broken : done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", {.synchronises = true}, [&](world& w) {
    const stream_pointer s = w.find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = w.forbid_unordered(*s); error != cudaSuccess) return error;
    w.wait_for(w.unfinished_of(*s));
    return w.broken;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return call("cudaStreamWaitEvent", {}, [&](world& w) {
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    const stream_pointer s = w.find_stream(stream);
    auto* const e = w.find_event(event);
    if (!s || !e) return cudaErrorInvalidResourceHandle;
    return w.stream_waits(*s, *e);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  return call("cudaLaunchHostFunc", {}, [&](world& w) {
    if (!function) return cudaErrorInvalidValue;
    const stream_pointer s = w.find_stream(stream);
    if (!s || s->in != this_thread().current) return cudaErrorInvalidResourceHandle;
    thread_state& me = this_thread();
    return w.submit(*s, {.what = work::kind::kernel, .function = function, .argument = user_data,
                         .is_host_function = !std::exchange(me.next_is_kernel, false),
                         .addresses = std::exchange(me.addresses_of_next, {})});
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return call("cudaEventCreateWithFlags", {}, [&](world& w) {
    constexpr unsigned int valid_flags = cudaEventBlockingSync | cudaEventDisableTiming;
    if (!event || (flags & ~valid_flags)) return cudaErrorInvalidValue;
    *event = w.new_handle(w.old_events);
    w.event_of[*event] = {.in = this_thread().current, .flags = flags};
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", {.releases = true}, [&](world& w) {
    if (!w.find_event(event)) return cudaErrorInvalidResourceHandle;
    w.event_of.erase(event);
    w.old_events.push_back(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", {}, [&](world& w) {
    const stream_pointer s = w.find_stream(stream);
    auto* const e = w.find_event(event);
    if (!s || !e || s->in != e->in) return cudaErrorInvalidResourceHandle;
    return w.record(*e, *s);
  });
}

namespace {

/// Checks an event for a query by the host. An event that is part of a graph is an error.
cudaError_t check_host_may_ask(world& w, const event* e) {
  if (!e) return cudaErrorInvalidResourceHandle;
  if (e->captured) {
    if (!e->captured->ended) w.invalidate(*e->captured);
    return cudaErrorCapturedEvent;
  }
  return w.forbid_unsafe();
}

}  // namespace

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", {}, [&](world& w) {
    auto* const e = w.find_event(event);
    if (const cudaError_t error = check_host_may_ask(w, e); error != cudaSuccess) return error;
    const bool done = !e->recorded || w.is_done({e->recorded});
    return w.broken != cudaSuccess ? w.broken : done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", {.synchronises = true}, [&](world& w) {
    auto* const e = w.find_event(event);
    if (const cudaError_t error = check_host_may_ask(w, e); error != cudaSuccess) return error;
    if (e->recorded) w.wait_for({e->recorded});
    return w.broken;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", {}, [&](world& w) {
    if (!milliseconds) return cudaErrorInvalidValue;
    const auto* const from = w.find_event(start);
    const auto* const to = w.find_event(end);
    if (!from || !to || from->in != to->in) return cudaErrorInvalidResourceHandle;
    if (from->captured || to->captured) return cudaErrorCapturedEvent;
    if ((from->flags | to->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
    if (!from->recorded || !to->recorded) return cudaErrorInvalidResourceHandle;
    if (!from->recorded->done || !to->recorded->done) {
      w.violate("cudaEventElapsedTime: polled before the events completed");
      return cudaErrorNotReady;
    }
    const auto nanoseconds = static_cast<double>(to->recorded->done_at_ns - from->recorded->done_at_ns);
    *milliseconds = static_cast<float>(nanoseconds / 1e6);
    return cudaSuccess;
  });
}
