// The sums behind train_images' metrics, on a GPU.
//
//   mr::metrics metrics({.every = 20, .device = make_gpu_sums(device.ordinal())});
//
// Also makes that GPU the calling thread's current one, which is what the step's kernels go by.
#pragma once

#include <millrace/train/device_sums.hpp>

#include <memory>

std::shared_ptr<millrace::device_sums> make_gpu_sums(int device);
