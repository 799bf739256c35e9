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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Returns the first line of a small file; empty if it cannot be read.
inline std::string first_line(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char text[256];
    if (std::fgets(text, sizeof text, file)) line = text;
    std::fclose(file);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

/// Returns the quota in cores from the text of cgroup v2's cpu.max ("200000 100000" or "max 100000"); 0: no quota.
inline double cores_of_cpu_max(const std::string& text) {
  long long quota = 0, period = 0;
  if (std::sscanf(text.c_str(), "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

/// Returns the path in a line of /proc/self/cgroup; empty for the root and for lines that do not match. Without a
/// controller the line of cgroup v2 matches ("0::/user.slice/x"), else that of the controller ("4:cpu,cpuacct:/x").
inline std::string cgroup_path_in(const std::string& line, const std::string& controller) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  if (controllers.find("," + controller + ",") == std::string::npos) return "";
  std::string path = line.substr(second + 1);
  while (!path.empty() && (path.back() == '\n' || path.back() == '/')) path.pop_back();
  return path;
}

/// Calls `look` with each folder from this process's cgroup up to the root, because limits apply at every level. With a
/// controller's name the folders are those of cgroup v1.
template <class Look>
void for_each_cgroup(const Look& look, const std::string& controller = "") {
  std::string path;
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
    char text[4096];
    while (path.empty() && std::fgets(text, sizeof text, file)) path = cgroup_path_in(text, controller);
    std::fclose(file);
  }
  const std::string root = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
  for (;;) {
    look(root + path);
    if (path.empty()) return;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

inline void name_this_thread([[maybe_unused]] const char* name) noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), name);   // at most 15 characters
#endif
}

}  // namespace detail

/// Returns how many cores this process may use, at least 1. This is the smaller of the affinity mask and the cgroup
/// quota (rounded up).
inline unsigned usable_cores() {
  unsigned cores = std::max(1U, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
    cores = static_cast<unsigned>(CPU_COUNT(&mask));
  double quota = 0;
  const auto tighten = [&quota](double limit) {
    if (limit > 0) quota = quota == 0 ? limit : std::min(quota, limit);
  };
  detail::for_each_cgroup(
      [&](const std::string& folder) { tighten(detail::cores_of_cpu_max(detail::first_line(folder + "/cpu.max"))); });
  const auto look_at_v1 = [&](const std::string& folder) {
    const std::string quota_us = detail::first_line(folder + "/cpu.cfs_quota_us");
    tighten(detail::cores_of_cpu_max(quota_us + " " + detail::first_line(folder + "/cpu.cfs_period_us")));
  };
  detail::for_each_cgroup(look_at_v1, "cpu");
  if (quota > 0) cores = std::min(cores, static_cast<unsigned>(quota + 0.999));
#endif
  return std::max(1U, cores);
}

namespace detail {

/// Returns how many bytes of memory this process may use: physical memory or the cgroup's limit, whichever is less.
inline std::size_t usable_memory_bytes() {
  std::size_t bytes = std::size_t{4} << 30;
#if defined(__linux__)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  const auto tighten = [&bytes](const std::string& text) {
    const unsigned long long limit = std::strtoull(text.c_str(), nullptr, 10);   // "max" reads as 0
    if (limit > 0) bytes = std::min(bytes, static_cast<std::size_t>(limit));
  };
  detail::for_each_cgroup([&](const std::string& folder) { tighten(detail::first_line(folder + "/memory.max")); });
  detail::for_each_cgroup(   // cgroup v1
      [&](const std::string& folder) { tighten(detail::first_line(folder + "/memory.limit_in_bytes")); }, "memory");
#endif
  return bytes;
}

}  // namespace detail

}}  // namespace millrace
