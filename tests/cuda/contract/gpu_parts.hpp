// What the tests that only a GPU can run take from nvcc: a kernel that keeps a stream busy, and sums in device memory.
#pragma once

#include <millrace/train/device_sums.hpp>

#include <memory>

/// A kernel of one thread that runs for so long, by the GPU's own clock.
void spin(double milliseconds, millrace::stream_view stream);

std::shared_ptr<millrace::device_sums> make_sums();
