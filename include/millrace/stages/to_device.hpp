// to_device: sets the device on which batches are delivered, and the number of device slots.
//
//   auto fastest = batches | mr::to_device();                                // the best device of this machine
//   auto on_host = batches | mr::to_device({.device = mr::host_device()});
//   auto on_gpu = batches | mr::to_device({.device = gpu, .stream = my_stream, .slots = 3});
//
// `stream` is the stream that the training step uses. The stream waits for the copy of a batch. The slot (the memory of
// a batch) is reused after the stream has completed its work on the batch. No thread waits for the stream. Millrace
// uses events to measure how long the stream has no batch. For CUDA's legacy default stream, it measures only the
// trainer's wait in next(), because an event in that stream waits for all blocking streams of the process. `slots`
// limits the batches in device memory: copies in progress and batches in use. The host device has no separate slots; it
// uses the host slots.
// Lifetime: the stream must live until the last batch is released. cudaStreamPerThread names a different stream on each
// thread. Therefore cudaStreamPerThread works only if each batch is released on the thread that received the batch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/best_device.hpp>
#include <millrace/flow/flow.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of to_device().
struct to_device_options {
  millrace::device device = best_device();
  stream_view stream{};    ///< stream of the training step; default: the device's legacy default stream
  std::size_t slots = 3;   ///< maximum number of batches in device memory
  /// If true, batch n is in slot n % session::slots(). Then a CUDA graph that was captured for a slot can run for each
  /// later batch of that slot.
  bool fixed_slots = false;
};

namespace detail {

/// The result of to_device().
struct to_device_stage : stage_tag {
  using batch_mark = void;
  to_device_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

}   // namespace detail

/// Returns the stage that delivers batches on a device; the default is best_device().
inline detail::to_device_stage to_device(to_device_options options = {}) { return {{}, std::move(options)}; }

}}   // namespace millrace
