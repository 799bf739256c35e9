// Sends many requests to a storage concurrently. Concurrent requests are faster, because each request mostly waits for
// the storage.
//
//   mr::detail::run_concurrently(names.size(), 32, [&](std::size_t i) { entries[i] = at->find(names[i]); });
//
// Errors: if calls of `act` throw, the function waits for all calls. Then it rethrows the exception of the call with
// the lowest index. Threads: starts up to `max_threads` - 1 threads and waits for them. If the system cannot start
// threads, the calling thread executes the remaining calls.
#pragma once

#include <millrace/io/file/name_list.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class notice_outlet;

/// Options of run_concurrently() for a list of names. If the calls need a long time, a notice reports the step
/// (sync/slow_step.hpp).
struct run_concurrently_options {
  const char* step;   ///< the name of the step in the notice, such as "finds files in the storage"
  name_list names;
  std::size_t max_threads = 32;
  notice_outlet* notices = nullptr;   ///< receives the notice; if null, the notice is printed to stderr
  std::uint64_t report_after_ns = 10'000'000'000;
};
void run_concurrently(const run_concurrently_options& o, const std::function<void(std::size_t)>& act);

/// Calls `act` with every index below `count`, on up to `max_threads` threads.
void run_concurrently(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& act);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/run_concurrently.inl>
#endif
