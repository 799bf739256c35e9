// Stream capture: forbidden calls, calls that invalidate it, and the resulting graphs.
#include "world.hpp"

#include <algorithm>

namespace fake_cuda::detail {

void world::invalidate(capture& c) { c.invalidated = true; }

/// Checks whether the modes of the thread and of the captures allow a potentially unsafe call, and invalidates those
/// captures.
cudaError_t world::forbid_unsafe() {
  const thread_state& me = this_thread();
  bool forbidden = false;
  if (me.mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  for (const auto& c : captures) {
    const bool own = c->thread == me.id && c->mode != cudaStreamCaptureModeRelaxed;
    const bool anybodys = me.mode == cudaStreamCaptureModeGlobal && c->mode == cudaStreamCaptureModeGlobal;
    if (!own && !anybodys) continue;
    invalidate(*c);
    forbidden = true;
  }
  return forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/// The captures of blocking streams, which would have to synchronize with the legacy stream.
std::vector<capture*> world::captures_beside(const stream& s) const {
  std::vector<capture*> captures;
  for (const stream_pointer& other : streams)
    if (s.legacy && other->in == s.in && other->blocking && other->capturing)
      captures.push_back(other->capturing.get());
  return captures;
}
cudaError_t world::forbid_legacy(const stream& s) {
  const std::vector<capture*> forbidding = captures_beside(s);
  for (capture* const c : forbidding) invalidate(*c);
  return forbidding.empty() ? cudaSuccess : cudaErrorStreamCaptureImplicit;
}

cudaError_t world::forbid_unordered(const stream& s) {
  if (const cudaError_t error = forbid_legacy(s); error != cudaSuccess) return error;
  if (s.capturing) {
    invalidate(*s.capturing);
    return cudaErrorStreamCaptureUnsupported;
  }
  return forbid_unsafe();
}

cudaError_t world::submit(stream& s, const work& todo, work_extra extra) {
  if (const cudaError_t error = forbid_legacy(s); error != cudaSuccess) return error;
  if (!s.capturing) {
    while (options.queue_depth > 0 && s.queue.size() >= options.queue_depth) wait_for({s.queue.front()});
    enqueue(s, todo, std::move(extra));
    return cudaSuccess;
  }
  if (s.capturing->invalidated) return cudaErrorStreamCaptureInvalidated;
  s.capturing->nodes.push_back({todo, s.capture_tail});
  s.capture_tail = {s.capturing->nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t world::record(event& e, stream& s) {
  if (const cudaError_t error = submit(s, {.what = work::kind::record}); error != cudaSuccess) return error;
  e.captured = s.capturing;
  e.captured_after = s.capture_tail;
  e.recorded = s.capturing ? nullptr : s.queue.back();
  return cudaSuccess;
}

cudaError_t world::stream_waits(stream& s, event& e) {
  if (const cudaError_t error = forbid_legacy(s); error != cudaSuccess) return error;
  if (s.capturing) {
    if (s.capturing->invalidated) return cudaErrorStreamCaptureInvalidated;
    if (e.captured == s.capturing) {
      s.capture_tail.insert(s.capture_tail.end(), e.captured_after.begin(), e.captured_after.end());
      return cudaSuccess;
    }
    invalidate(*s.capturing);
    if (!e.captured || e.captured->ended) return cudaErrorStreamCaptureIsolation;
    invalidate(*e.captured);
    return cudaErrorStreamCaptureMerge;
  }
  if (e.captured) {
    if (e.captured->ended) return cudaErrorCapturedEvent;
    if (e.captured->invalidated) return cudaErrorStreamCaptureInvalidated;
    if (s.legacy) {
      invalidate(*e.captured);
      return cudaErrorStreamCaptureImplicit;
    }
    s.capturing = e.captured;   // the stream joins the capture here
    s.capture_tail = e.captured_after;
    return cudaSuccess;
  }
  if (e.recorded && !e.recorded->done) return submit(s, {.what = work::kind::wait}, {.after = {e.recorded}});
  return cudaSuccess;
}

cudaError_t world::end_capture(stream& s, cudaGraph_t* result) {
  const std::shared_ptr<capture> c = s.capturing;
  if (!c) return cudaErrorIllegalState;
  if (c->origin != &s) return cudaErrorStreamCaptureUnmatched;
  if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != this_thread().id) {
    return cudaErrorStreamCaptureWrongThread;
  }
  // All captured work must join the stream in which the capture began.
  std::vector<bool> joined(c->nodes.size());
  std::vector<std::size_t> to_visit = s.capture_tail;
  while (!to_visit.empty()) {
    const std::size_t node = to_visit.back();
    to_visit.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    to_visit.insert(to_visit.end(), c->nodes[node].after.begin(), c->nodes[node].after.end());
  }
  for (const stream_pointer& other : streams) {
    if (other->capturing != c) continue;
    other->capturing = nullptr;
    other->capture_tail.clear();
  }
  c->ended = true;
  std::erase(captures, c);
  if (c->invalidated) return cudaErrorStreamCaptureInvalidated;
  if (std::find(joined.begin(), joined.end(), false) != joined.end()) return cudaErrorStreamCaptureUnjoined;

  graph g;
  for (const capture::node& n : c->nodes) {
    // The order of the nodes already respects events and waits.
    if (n.todo.what != work::kind::record && n.todo.what != work::kind::wait) g.nodes.push_back(n.todo);
  }
  *result = new_handle<cudaGraph_t>();
  graph_of[*result] = std::move(g);
  return cudaSuccess;
}

cudaError_t world::launch(graph& g, stream& s) {
  for (const work& todo : g.nodes) {
    for (const void* address : {static_cast<const void*>(todo.to), todo.from}) {
      if (!address || !allocations.was_freed(address)) continue;
      violate("cudaGraphLaunch: the graph uses memory that was freed");
      drop_all_work();
      return broken = cudaErrorIllegalAddress;
    }
  }
  bool first = true;
  for (const work& todo : g.nodes) {
    work_extra extra;
    if (first && g.last_launch) extra.after = {g.last_launch};
    first = false;
    if (const cudaError_t error = submit(s, todo, std::move(extra)); error != cudaSuccess) return error;
  }
  if (!s.capturing && !g.nodes.empty()) g.last_launch = s.queue.back();
  return cudaSuccess;
}

}  // namespace fake_cuda::detail

using namespace fake_cuda::detail;

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", {}, [&](world& w) {
    if (!status) return cudaErrorInvalidValue;
    const stream_pointer s = w.find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (!w.captures_beside(*s).empty()) return cudaErrorStreamCaptureImplicit;   // no capture is invalidated
    *status = !s->capturing               ? cudaStreamCaptureStatusNone
              : s->capturing->invalidated ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", {}, [&](world& w) {
    const stream_pointer s = w.find_stream(stream);
    if (!s) return cudaErrorInvalidResourceHandle;
    if (s->legacy) return cudaErrorStreamCaptureUnsupported;
    if (s->capturing) return cudaErrorIllegalState;
    auto c = std::make_shared<capture>();
    c->mode = mode;
    c->thread = this_thread().id;
    c->origin = s.get();
    w.captures.push_back(c);
    s->capturing = c;
    s->capture_tail.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", {}, [&](world& w) {
    if (!graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    const stream_pointer s = w.find_stream(stream);
    return s ? w.end_capture(*s, graph) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", {}, [&](world&) {
    if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed) {
      return cudaErrorInvalidValue;
    }
    std::swap(*mode, this_thread().mode);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return call("cudaGraphInstantiate", {}, [&](world& w) {
    const auto it = w.graph_of.find(graph);
    if (!executable || flags != 0 || it == w.graph_of.end()) return cudaErrorInvalidValue;
    *executable = w.new_handle<cudaGraphExec_t>();
    w.executable_of[*executable] = {.nodes = it->second.nodes};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call("cudaGraphLaunch", {}, [&](world& w) {
    const auto it = w.executable_of.find(executable);
    if (it == w.executable_of.end()) return cudaErrorInvalidValue;
    const stream_pointer s = w.find_stream(stream);
    return s ? w.launch(it->second, *s) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", {.releases = true}, [&](world& w) {
    return w.graph_of.erase(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call("cudaGraphExecDestroy", {.releases = true}, [&](world& w) {
    return w.executable_of.erase(executable) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
