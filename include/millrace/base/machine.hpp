// Finds out how many cores (affinity mask, cgroup quota) and how much memory (cgroup limit) this process may use.
//
//   unsigned workers = mr::usable_cores();          // never more than the scheduler grants
//   std::size_t all  = mr::detail::usable_memory_bytes();   // physical memory or the cgroup's limit, whichever is less
//
// oneTBB considers only the affinity mask. In a container with a quota of 2 cores on a 64-core machine it would start
// 64 threads that throttle each other. Works on Linux; other systems give the hardware's numbers.
// Errors: none. Threads: any; each call reads the values again, without state.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns the first line of a small file; empty if it cannot be read.
std::string first_line(const std::string& path);

/// Returns the quota in cores from the text of cgroup v2's cpu.max ("200000 100000" or "max 100000"); 0: no quota.
double cores_of_cpu_max(const std::string& text);

/// Returns the path in a line of /proc/self/cgroup; empty for the root and for lines that do not match. Without a
/// controller the line of cgroup v2 matches ("0::/user.slice/x"), else that of the controller ("4:cpu,cpuacct:/x").
std::string cgroup_path_in(const std::string& line, const std::string& controller);

/// Returns the folders from this process's cgroup up to the root, because limits apply at every level. With a
/// controller's name they are those of cgroup v1.
std::vector<std::string> cgroup_folders(const std::string& controller = "");

void name_this_thread([[maybe_unused]] const char* name) noexcept;

}  // namespace detail

/// Returns how many cores this process may use, at least 1. This is the smaller of the affinity mask and the cgroup
/// quota (rounded up).
unsigned usable_cores();

namespace detail {

/// Returns how many bytes of memory this process may use: physical memory or the cgroup's limit, whichever is less.
std::size_t usable_memory_bytes();

}  // namespace detail

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/base/machine.ipp>
#endif
