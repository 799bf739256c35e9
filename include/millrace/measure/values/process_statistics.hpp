// Measures the resources of this process: processor time, throttling by quota, run delay, bytes from storage.
//
//   const auto before = mr::detail::process_statistics::now();
//   run_epoch();
//   const mr::detail::process_statistics spent = mr::detail::process_statistics::now() - before;
//
// Costs some microseconds for each thread of the process. On Linux it reads the cgroup's cpu.stat,
// /proc/self/task/N/schedstat and /proc/self/io. Values that the system does not provide are 0; storage bytes are
// unset. Storage bytes are those of the entire process, and some network file systems do not count theirs.
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/machine.hpp>

#include <optional>

#if defined(__linux__)
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Statistics of the process since its start, or their difference between two times.
struct process_statistics {
  std::uint64_t throttled_ns = 0;   ///< throttled time: the largest among the cgroup and its ancestors
  std::uint64_t cpu_ns = 0;         ///< processor time of all threads together
  std::uint64_t run_delay_ns = 0;   ///< time ready to run, but not running, of all live threads together
  std::optional<std::uint64_t> storage_bytes{};   ///< bytes read from storage; unset: unknown

  /// Returns the current statistics.
  static process_statistics now();

  friend process_statistics operator-(process_statistics later, const process_statistics& earlier) noexcept {
    later.cpu_ns -= std::min(later.cpu_ns, earlier.cpu_ns);
    // The delays of threads that ended are missing in the later sum, so it may be smaller.
    later.throttled_ns -= std::min(later.throttled_ns, earlier.throttled_ns);
    later.run_delay_ns -= std::min(later.run_delay_ns, earlier.run_delay_ns);
    if (later.storage_bytes)
      *later.storage_bytes -= std::min(*later.storage_bytes, earlier.storage_bytes.value_or(0));
    return later;
  }
};

/// Returns the number after `word` at the start of a line of a small file: "throttled_usec 120", "read_bytes: 4096".
std::optional<std::uint64_t> number_after(const std::string& path, const char* word);

/// Returns how long the calling thread has been ready to run, but not running, since it began; nothing if the system
/// does not report it. Costs some microseconds and allocates nothing.
std::optional<std::uint64_t> run_delay_of_this_thread_ns() noexcept;

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/process_statistics.inl>
#endif
