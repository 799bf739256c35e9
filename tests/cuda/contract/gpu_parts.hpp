// What the tests that only a GPU can run take from nvcc: a kernel that keeps a stream busy, and sums in device memory.
#pragma once

#include <millrace/device/view.hpp>
#include <millrace/item/column/row_mix.hpp>
#include <millrace/train/device_sums.hpp>

#include <memory>

/// A kernel of one thread that runs for so long, by the GPU's own clock.
void spin(double milliseconds, millrace::stream_view stream);

std::shared_ptr<millrace::device_sums> make_sums();

/// mr::mix_rows() of a batch in device memory.
void mix_pictures(const millrace::tensor_view<std::uint8_t, 4>& pixels,
                  const millrace::tensor_view<const millrace::row_mix, 1>& mixes, millrace::stream_view stream);
