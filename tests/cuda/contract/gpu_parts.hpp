// The nvcc part of the tests that need a GPU: a kernel that keeps a stream busy, and sums in device memory.
#pragma once

#include <millrace/device/view.hpp>
#include <millrace/item/column/row_mix.hpp>
#include <millrace/train/device_sums.hpp>

#include <memory>

/// Runs a kernel of one thread for the given time of the GPU's clock.
void spin(double milliseconds, millrace::stream_view stream);

std::shared_ptr<millrace::device_sums> make_sums();

/// mr::mix_rows() of a batch in device memory.
void mix_pictures(const millrace::tensor_view<std::uint8_t, 4>& pixels,
                  const millrace::tensor_view<const millrace::row_mix, 1>& mixes, millrace::stream_view stream);
