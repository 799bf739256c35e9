// For the contract of sessions: a flow of samples that contain their number, and a training step that records batches.
#pragma once

#include "../../unit/run/quiet_sessions.hpp"
#include "contract.hpp"

#include <millrace/device/best_device.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <string>

namespace contract {

namespace mr = millrace;

inline constexpr std::size_t rows = 8, width = 1'000;   // about two pages per batch, but not a multiple

struct example {
  std::array<std::uint8_t, width> pixels;
  std::int32_t label;
};

inline example example_of(int n) {
  example e{};
  for (std::size_t i = 0; i < width; ++i) e.pixels[i] = static_cast<std::uint8_t>(n * 7 + static_cast<int>(i % 31));
  e.label = n;
  return e;
}

using layout = mr::batch_of<&example::pixels, &example::label>;

inline auto flow(int samples, mr::to_device_options where = {.device = mr::cuda_device(0)}) {
  return mr::from(numbers(samples)) | mr::map(example_of) |
         mr::batch<&example::pixels, &example::label>({.size = rows}) | mr::prefetch({.batches = 2}) |
         mr::to_device(std::move(where));
}

/// A training step that records batches: it copies them in a stream of the user.
class batch_recorder {
 public:
  explicit batch_recorder(std::size_t batches) : recorded_(make_pinned(batches * bytes)) {}

  void step(const layout& b, cudaStream_t stream) {
    const auto pixels = b.get<&example::pixels>();
    unsigned char* const to = recorded_.get() + batches_++ * bytes;
    ok(cudaMemcpyAsync(to, pixels.data, pixels.size_bytes(), cudaMemcpyDeviceToHost, stream));
    ok(cudaMemcpyAsync(to + width * rows, b.get<&example::label>().data, 4 * b.size(), cudaMemcpyDeviceToHost, stream));
  }

  /// Whether they are batches 0, 1, ... of the flow. All work must be complete.
  bool right(int first_sample = 0) const {
    for (std::size_t n = 0; n < batches_; ++n)
      for (std::size_t i = 0; i < rows; ++i) {
        const example e = example_of(first_sample + static_cast<int>(n * rows + i));
        if (std::memcmp(recorded_.get() + n * bytes + i * width, e.pixels.data(), width) != 0) return false;
        if (std::memcmp(recorded_.get() + n * bytes + rows * width + 4 * i, &e.label, 4) != 0) return false;
      }
    return true;
  }
  std::size_t batches() const { return batches_; }

 private:
  static constexpr std::size_t bytes = rows * width + rows * 4;
  pinned_memory recorded_;
  std::size_t batches_ = 0;
};

}  // namespace contract
