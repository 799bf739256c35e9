// Creates the object that delivers a session's batches: the slots themselves, or copies of them on a device.
//
//   auto output = mr::detail::new_batch_output({.device = mr::host_device()}, true);
//
// Errors: those of the device. Threads: any.
#pragma once

#include <millrace/deliver/batch_output.hpp>
#include <millrace/stages/to_device.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the batch output for the device of the options. `threaded`: copies have their own threads.
std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/deliver/impl/new_batch_output.inl>
#endif
