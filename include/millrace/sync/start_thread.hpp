// Starts threads, and reports an error if the system refuses to start a thread.
//
//   std::thread reader = mr::detail::start_thread([&] { read_all(); });
//   mr::detail::start_threads(all, 4, [&](std::size_t i) { work(i); });   // adds 4 threads to `all`
//
// Errors: io_error with the system's reason. If start_threads() fails, the threads that were already started continue
// to run. Threads: any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Starts a thread.
std::thread start_thread(std::function<void()> body);

/// Adds `count` threads to `all`. The i-th new thread runs body(i). Existing threads are not affected.
void start_threads(std::vector<std::thread>& all, std::size_t count, const std::function<void(std::size_t)>& body);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sync/impl/start_thread.inl>
#endif
