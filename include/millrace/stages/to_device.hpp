// to_device: where batches are delivered, and how many device slots there are.
//
//   flow | mr::to_device()                                              // the best device of this machine
//        | mr::to_device({.device = mr::host_device()})
//        | mr::to_device({.device = gpu, .stream = my_stream, .slots = 3})
//
// `stream` is the stream that the training step uses: a batch is ready in that stream, and released in it, without any
// thread waiting. `slots` bounds the batches in device memory (copies under way and batches in use); the host device
// has none of its own, it uses the host slots. The stream lives until the last batch is released. cudaStreamPerThread
// is another one on each thread: right only where batches are released on the thread that gets them.
#pragma once

#include <millrace/device/best_device.hpp>
#include <millrace/flow/flow.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

struct to_device_options {
  millrace::device device = best_device();
  stream_view stream{};    ///< default: the device's legacy default stream
  std::size_t slots = 3;   ///< batches in device memory
  /// Batch n lies in slot n % session::slots(), at the same address every time: for a step that is captured in a graph.
  bool fixed_slots = false;
};

struct to_device_stage : stage_tag {
  using batch_mark = void;
  to_device_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

inline to_device_stage to_device(to_device_options options = {}) { return {{}, std::move(options)}; }

}}  // namespace millrace
