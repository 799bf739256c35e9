// Starts a thread, or says that the system refused one.
//
//   std::thread reader = mr::detail::started_thread([&] { read_all(); });
//   mr::detail::start_threads(all, 4, [&](std::size_t i) { work(i); });   // 4 more in std::vector<std::thread> all
//
// Errors: io_error with the system's reason; the threads that were started before run on. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Throws the io_error of a refused thread.
[[noreturn]] void throw_no_thread(const std::system_error& why);

/// Starts a thread.
template <class Body>
std::thread started_thread(Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& why) {
    throw_no_thread(why);
  }
}

/// Adds `count` threads, of which the i-th runs body(i). Those that are there already stay where they are.
template <class Body>
void start_threads(std::vector<std::thread>& all, std::size_t count, const Body& body) {
  all.reserve(all.size() + count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(started_thread([body, i] { body(i); }));
}

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sync/started_thread.ipp>
#endif
