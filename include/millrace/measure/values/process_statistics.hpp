// Measures the resource usage of this process: processor time, throttling by a quota, run delay, bytes read from
// storage.
//
//   const auto before = mr::detail::process_statistics::now();
//   run_epoch();
//   const mr::detail::process_statistics spent = mr::detail::process_statistics::now() - before;
//
// Cost: a few microseconds for each thread of the process. On Linux, now() reads the cgroup's cpu.stat,
// /proc/self/task/N/schedstat and /proc/self/io. If the system does not provide a value, the value is 0, but
// storage_bytes is unset. The kernel does not count the bytes of some network file systems.
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/base/machine.hpp>

#include <optional>

#if defined(__linux__)
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Statistics of the process since its start, or the difference between the statistics at two times.
struct process_statistics {
  std::uint64_t throttled_ns = 0;   ///< maximum of the throttled times of the cgroup and its ancestors
  std::uint64_t cpu_ns = 0;         ///< processor time, summed over all threads
  std::uint64_t run_delay_ns = 0;   ///< time in which live threads waited for a core, summed over these threads
  std::optional<std::uint64_t> storage_bytes{};   ///< bytes read from storage; unset if unknown

  /// Returns the current statistics.
  static process_statistics now();

  friend process_statistics operator-(process_statistics later, const process_statistics& earlier) noexcept {
    later.cpu_ns -= std::min(later.cpu_ns, earlier.cpu_ns);
    // The later run_delay_ns may be smaller, because it excludes threads that have ended.
    later.throttled_ns -= std::min(later.throttled_ns, earlier.throttled_ns);
    later.run_delay_ns -= std::min(later.run_delay_ns, earlier.run_delay_ns);
    if (later.storage_bytes) *later.storage_bytes -= std::min(*later.storage_bytes, earlier.storage_bytes.value_or(0));
    return later;
  }
};

/// In a small file, finds a line that begins with `word`, such as "throttled_usec 120" or "read_bytes: 4096". Returns
/// the number after `word`.
std::optional<std::uint64_t> process_statistic_after(const std::string& path, const char* word);

/// Returns the total time in which the calling thread was ready to run, but not running. The result is empty if the
/// system does not report this time. Costs a few microseconds and does not allocate.
std::optional<std::uint64_t> run_delay_of_this_thread_ns() noexcept;

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/measure/values/impl/process_statistics.inl>
#endif
