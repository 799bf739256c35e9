// The kernels of the programs that need a GPU, compiled by nvcc, or for the host with the fake runtime.
#pragma once

#include <millrace/device/view.hpp>
#include <millrace/item/column/row_mix.hpp>
#include <millrace/train/device_sums.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Runs a kernel of one thread for the given time of the GPU's clock.
void spin(double milliseconds, millrace::stream_view stream);

/// Queues a kernel that writes to an address without memory, which ends all work of the process on the GPU.
void write_to_nowhere(millrace::stream_view stream);

std::shared_ptr<millrace::device_sums> make_sums();

/// mr::mix_rows() of a batch in device memory.
void mix_pictures(const millrace::tensor_view<std::uint8_t, 4>& pixels,
                  const millrace::tensor_view<const millrace::row_mix, 1>& mixes, millrace::stream_view stream);

/// A kernel of the library on random data that exceed the GPU's cache, unless `small_data`.
struct timed_kernel {
  std::string name;
  double bytes = 0;           ///< that it must read and write
  double allowed_ratio = 0;   ///< of its time to that of a copy of the same number of bytes; 0: not judged
  std::function<void(millrace::stream_view)> launch{};
};
/// All kernels of the library. They own their memory on the current GPU.
std::vector<timed_kernel> timed_kernels(bool small_data);
