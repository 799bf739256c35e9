// A GPU as the accelerator of a benchmark: steps are fills of device memory, and timing events say when they ran.
//
//   if (auto chip = bench::gpu_accelerator::find()) ...    // null without a GPU
//   chip->launch_step(0.02);                               // fills that last 20 ms here, in a separate stream
//
// Fills (cudaMemsetAsync) are kernels of the driver, so no compiler for device code is needed. They use the bandwidth
// of the device's memory, of which a copy from the host needs a small part. The constructor measures the duration of a
// fill. find() creates events for `max_steps` steps between two calls of take_steps(), so that the measured loop
// creates none. Errors: io_error with CUDA's message. Needs MILLRACE_CUDA.
#pragma once

#include "accelerator.hpp"

#include <millrace/device/cuda_error.hpp>
#include <millrace/stages/to_device.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace bench {

using millrace::detail::check_cuda;

/// Returns whether there is a working GPU; if not, `why` is the reason.
inline bool gpu_found(std::string& why) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return true;
  why = status == cudaSuccess ? "none found" : cudaGetErrorString(status);
  static_cast<void>(cudaGetLastError());   // or a later call would report this error
  return false;
}

inline std::string gpu_name() {
  int device = 0, driver = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return std::string(properties.name) + ", driver for CUDA " + std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10);
}

class gpu_accelerator final : public accelerator {
 public:
  static constexpr std::size_t max_steps = 4096;

  static std::unique_ptr<accelerator> find() {
    std::string why;
    if (!gpu_found(why)) return nullptr;
    return std::unique_ptr<accelerator>(new gpu_accelerator);
  }

  gpu_accelerator(const gpu_accelerator&) = delete;
  gpu_accelerator& operator=(const gpu_accelerator&) = delete;
  ~gpu_accelerator() override {
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t mark : marks_) cudaEventDestroy(mark);
    cudaFree(filled_);
    cudaFree(target_);
    cudaStreamDestroy(stream_);
  }

  std::string description() const override {
    char text[96];
    std::snprintf(text, sizeof text, "; a step is a sequence of fills of %zu MiB, %.3f ms each", fill_bytes_ >> 20,
                  1e3 * fill_s_);
    return gpu_name() + text;
  }
  millrace::device device() override { return millrace::cuda_device(ordinal_); }
  millrace::stream_view stream() override { return stream_; }

  void launch_step(double seconds) override {
    if (steps_ == max_steps)
      throw millrace::setup_error("there are more steps than events", "Call take_steps() more often");
    check_cuda(cudaEventRecord(marks_[2 * steps_], stream_), "cudaEventRecord");
    launch_fills(std::max(1L, std::lround(seconds / fill_s_)));
    check_cuda(cudaEventRecord(marks_[2 * steps_ + 1], stream_), "cudaEventRecord");
    ++steps_;
  }

  void copy_and_wait(const void* from, std::size_t bytes) override {
    if (bytes > target_bytes_) {
      check_cuda(cudaFree(target_), "cudaFree");
      check_cuda(cudaMalloc(&target_, bytes), "cudaMalloc");
      target_bytes_ = bytes;
    }
    check_cuda(cudaMemcpy(target_, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    // From pageable memory the call may return before the last piece has arrived; our stream does not wait for it.
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

  void wait() override { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  std::vector<span> take_steps() override {
    std::vector<span> spans(steps_);
    for (std::size_t i = 0; i < steps_; ++i) spans[i] = {seconds_at(marks_[2 * i]), seconds_at(marks_[2 * i + 1])};
    steps_ = 0;
    return spans;
  }

 private:
  gpu_accelerator() {
    check_cuda(cudaGetDevice(&ordinal_), "cudaGetDevice");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    marks_.resize(2 * max_steps);
    for (cudaEvent_t& mark : marks_)
      check_cuda(cudaEventCreateWithFlags(&mark, cudaEventDefault), "cudaEventCreateWithFlags");
    check_cuda(cudaMalloc(&filled_, max_fill_bytes), "cudaMalloc");
    // About a quarter of a millisecond each: fine enough for a step, and few enough for the queue of launches.
    const double first_s = measure_fill();
    const double fill_bytes = std::clamp(static_cast<double>(fill_bytes_) * 0.25e-3 / first_s,
                                         static_cast<double>(std::size_t{1} << 20),
                                         static_cast<double>(max_fill_bytes));
    fill_bytes_ = static_cast<std::size_t>(fill_bytes) >> 20 << 20;
    fill_s_ = measure_fill();
  }

  double measure_fill() {
    constexpr long fills = 100;
    double best = HUGE_VAL;
    for (int round = 0; round < 4; ++round) {   // the first round is a warm-up
      check_cuda(cudaEventRecord(marks_[0], stream_), "cudaEventRecord");
      launch_fills(fills);
      check_cuda(cudaEventRecord(marks_[1], stream_), "cudaEventRecord");
      wait();
      best = std::min(best, (seconds_at(marks_[1]) - seconds_at(marks_[0])) / fills);
    }
    return best;
  }

  void launch_fills(long count) {
    for (long i = 0; i < count; ++i)
      check_cuda(cudaMemsetAsync(filled_, static_cast<int>(i & 255), fill_bytes_, stream_), "cudaMemsetAsync");
  }

  /// Seconds since the first mark of this run.
  double seconds_at(cudaEvent_t mark) const {
    float ms = 0;
    if (mark != marks_[0]) check_cuda(cudaEventElapsedTime(&ms, marks_[0], mark), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(ms);
  }

  static constexpr std::size_t max_fill_bytes = std::size_t{512} << 20;

  int ordinal_ = 0;   // of the device
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> marks_;   // of each step: start, end
  std::size_t steps_ = 0;
  void* filled_ = nullptr;
  std::size_t fill_bytes_ = std::size_t{64} << 20;
  double fill_s_ = 0;
  void* target_ = nullptr;   // of blocking copies
  std::size_t target_bytes_ = 0;
};

}   // namespace bench
