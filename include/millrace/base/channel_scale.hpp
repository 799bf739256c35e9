// Computes the scale and bias that normalize the bytes of one channel: fma(byte, scale, bias).
//
//   const auto red = mr::detail::channel_scale_of(0.485, 0.229, 0);     // mean, std, channel
//
// mean and std are fractions of full scale (0..1), as in torchvision. scale is 1 / (255 std), and bias is -mean / std.
// Errors: setup_error if std is not above 0, or if mean or std is not finite. Threads: the functions are pure; any
// thread may call them.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

struct channel_scale {
  float scale = 1, bias = 0;
};

channel_scale channel_scale_of(double mean, double deviation, std::size_t channel);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/channel_scale.inl>
#endif
