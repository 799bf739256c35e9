// Defines what machine.hpp declares.
#pragma once

#include <millrace/base/machine.hpp>

#include <millrace/base/text_file.hpp>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string first_line(const std::string& path) {
  std::string line;
  if (const auto file = open_text(path.c_str())) {
    char text[256];
    if (std::fgets(text, sizeof text, file.get())) line = text;
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

MILLRACE_INLINE double cores_of_cpu_max(const std::string& text) {
  long long quota = 0, period = 0;
  if (std::sscanf(text.c_str(), "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

MILLRACE_INLINE std::string cgroup_path_in(const std::string& line, const std::string& controller) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  if (controllers.find("," + controller + ",") == std::string::npos) return "";
  std::string path = line.substr(second + 1);
  while (!path.empty() && (path.back() == '\n' || path.back() == '/')) path.pop_back();
  return path;
}

MILLRACE_INLINE std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::string path;
  if (const auto file = open_text("/proc/self/cgroup")) {
    char text[4096];
    while (path.empty() && std::fgets(text, sizeof text, file.get())) path = cgroup_path_in(text, controller);
  }
  const std::string root = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
  std::vector<std::string> folders{root + path};
  while (!path.empty()) {
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
    folders.push_back(root + path);
  }
  return folders;
}

MILLRACE_INLINE void name_this_thread([[maybe_unused]] const char* name) noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), name);   // at most 15 characters
#endif
}

}  // namespace detail

MILLRACE_INLINE unsigned usable_cores() {
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
  for (const std::string& folder : detail::cgroup_folders())
    tighten(detail::cores_of_cpu_max(detail::first_line(folder + "/cpu.max")));
  for (const std::string& folder : detail::cgroup_folders("cpu")) {   // cgroup v1
    const std::string quota_us = detail::first_line(folder + "/cpu.cfs_quota_us");
    tighten(detail::cores_of_cpu_max(quota_us + " " + detail::first_line(folder + "/cpu.cfs_period_us")));
  }
  if (quota > 0) cores = std::min(cores, static_cast<unsigned>(quota + 0.999));
#endif
  return std::max(1U, cores);
}

namespace detail {

MILLRACE_INLINE std::size_t usable_memory_bytes() {
  std::size_t bytes = std::size_t{4} << 30;
#if defined(__linux__)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  const auto tighten = [&bytes](const std::string& text) {
    const unsigned long long limit = std::strtoull(text.c_str(), nullptr, 10);   // "max" reads as 0
    if (limit > 0) bytes = std::min(bytes, static_cast<std::size_t>(limit));
  };
  for (const std::string& folder : detail::cgroup_folders()) tighten(detail::first_line(folder + "/memory.max"));
  for (const std::string& folder : detail::cgroup_folders("memory"))   // cgroup v1
    tighten(detail::first_line(folder + "/memory.limit_in_bytes"));
#endif
  return bytes;
}

}  // namespace detail

}}  // namespace millrace
