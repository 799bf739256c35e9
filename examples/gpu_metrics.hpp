// The accumulators of train_images' metrics on a GPU.
//
//   mr::metrics metrics({.every = 20, .device = make_gpu_sums(device.ordinal())});
//
// Also makes that GPU current for the calling thread, because the kernels of the step use the current GPU.
#pragma once

#include <millrace/train/device_sums.hpp>

#include <memory>

std::shared_ptr<millrace::device_sums> make_gpu_sums(int device);
