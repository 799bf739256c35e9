// Shared by the parts of the program gpu_rows: streams, memory, and sessions of samples that are ready in memory.
#pragma once

#include "../../../bench/harness.hpp"
#include "../contract/gpu_parts.hpp"
#include "../contract/row_list.hpp"
#ifdef MILLRACE_FAKE_CUDA
#include "../fake/fake_cuda.hpp"
#endif

#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/train/metrics.hpp>

#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace gpu_rows {

namespace mr = millrace;
using mr::detail::check_cuda;

inline void require(bool good, const std::string& expected) {
  if (!good) throw mr::data_error("this was expected: " + expected, "Report this as a bug of Millrace");
}
inline double seconds_now() { return bench::seconds_of(CLOCK_MONOTONIC); }
template <class Body>
double seconds_of(const Body& body) {
  const double start = seconds_now();
  body();
  return seconds_now() - start;
}

class gpu_stream {
 public:
  gpu_stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  gpu_stream(const gpu_stream&) = delete;
  gpu_stream& operator=(const gpu_stream&) = delete;
  ~gpu_stream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }
  operator mr::stream_view() const { return stream_; }
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class gpu_memory {
 public:
  explicit gpu_memory(std::size_t bytes) : bytes_(bytes) { check_cuda(cudaMalloc(&memory_, bytes), "cudaMalloc"); }
  gpu_memory(const gpu_memory&) = delete;
  gpu_memory& operator=(const gpu_memory&) = delete;
  ~gpu_memory() { cudaFree(memory_); }
  void* get() const { return memory_; }
  std::vector<std::uint8_t> content() const {
    std::vector<std::uint8_t> values(bytes_);
    check_cuda(cudaMemcpy(values.data(), memory_, bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

 private:
  const std::size_t bytes_;
  void* memory_ = nullptr;
};

/// A row that is copied from memory, as a worker writes a decoded sample.
struct ready_row {
  using element = std::uint8_t;
  const std::uint8_t* from;
  std::size_t bytes;

  std::array<std::size_t, 1> shape() const { return {bytes}; }
  void render(std::span<std::uint8_t> row) const { std::memcpy(row.data(), from, bytes); }
};
struct example {
  ready_row bytes;
  float number;
};
constexpr std::size_t row_starts = 1'024;   // the content of sample n begins at byte n % row_starts

/// Sessions of samples that are ready in memory.
struct sample_set {
  std::size_t row_bytes = 1'000, rows = 8, batches = 100;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(row_bytes + row_starts);

  sample_set(std::size_t bytes, std::size_t batch_rows, std::size_t count)
      : row_bytes(bytes), rows(batch_rows), batches(count) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  }
  std::size_t batch_bytes() const { return row_bytes * rows; }
  std::vector<std::uint8_t> content(std::size_t batch) const {
    std::vector<std::uint8_t> all;
    for (std::size_t n = batch * rows; n < (batch + 1) * rows; ++n) {
      const auto from = memory.begin() + static_cast<std::ptrdiff_t>(n % row_starts);
      all.insert(all.end(), from, from + static_cast<std::ptrdiff_t>(row_bytes));
    }
    return all;
  }
  mr::session<&example::bytes, &example::number> session(mr::to_device_options where) const;
};

// The parts: each returns the exit status. gpu_speed.cpp measures; gpu_rows.cpp destroys, fails and opens contexts.
int first(bench::harness& run);
int waits(bench::harness& run);
int session(bench::harness& run);
int pinned(bench::harness& run);
int kernels(bench::harness& run);
int graph(bench::harness& run);

}   // namespace gpu_rows
