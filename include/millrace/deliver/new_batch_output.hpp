// Creates the object that delivers a session's batches, either in the host slots themselves or as copies on a device.
//
//   auto output = mr::detail::new_batch_output({.device = mr::host_device()}, true);
//
// Errors: throws the errors of the device. Threads: any thread.
#pragma once

#include <millrace/deliver/batch_output.hpp>
#include <millrace/stages/to_device.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the batch output for the device of the options. With `threaded`, separate threads perform the copies.
std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/new_batch_output.inl>
#endif
