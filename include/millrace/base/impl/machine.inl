// Definitions for machine.hpp.
#pragma once

#include <millrace/base/machine.hpp>

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

MILLRACE_RARE std::string first_line(const std::string& path) {
  std::string line;
  if (const auto file = open_text(path.c_str())) {
    char text[256];
    if (std::fgets(text, sizeof text, file.get())) line = text;
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

MILLRACE_RARE double cores_of_cpu_max(const std::string& text) {
  long long quota = 0, period = 0;
  if (std::sscanf(text.c_str(), "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

MILLRACE_RARE std::string cgroup_path_in(const std::string& line, const std::string& controller) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  if (controllers.find("," + controller + ",") == std::string::npos) return "";
  std::string path = line.substr(second + 1);
  while (!path.empty() && (path.back() == '\n' || path.back() == '/')) path.pop_back();
  return path;
}

MILLRACE_RARE std::vector<std::string> cgroup_folders(const std::string& controller, const std::string& process) {
  std::string path;
  if (const auto file = open_text(("/proc/" + process + "/cgroup").c_str())) {
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

MILLRACE_RARE void name_this_thread([[maybe_unused]] const char* name) noexcept {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), name);   // at most 15 characters
#endif
}

}   // namespace detail

namespace detail {

/// The lowest limit of a cgroup, and its folder.
struct cgroup_limit {
  double amount = 0;   // 0 without a limit
  std::string folder{};

  void tighten(double limit, const std::string& at) {
    if (limit <= 0 || (amount > 0 && limit >= amount)) return;
    amount = limit;
    folder = at;
  }

  /// Returns whether another process is under the same limit.
  bool is_also_of(const std::string& process, const std::string& controller_v1) const {
    if (amount <= 0 || process == "0") return true;
    for (const std::string& controller : {std::string(), controller_v1})
      for (const std::string& other : cgroup_folders(controller, process))
        if (other == folder) return true;
    return false;
  }
};

MILLRACE_RARE cgroup_limit cgroup_cores() {
  cgroup_limit quota;
#if defined(__linux__)
  for (const std::string& folder : cgroup_folders())
    quota.tighten(cores_of_cpu_max(first_line(folder + "/cpu.max")), folder);
  for (const std::string& folder : cgroup_folders("cpu")) {   // cgroup v1
    const std::string quota_us = first_line(folder + "/cpu.cfs_quota_us");
    quota.tighten(cores_of_cpu_max(quota_us + " " + first_line(folder + "/cpu.cfs_period_us")), folder);
  }
#endif
  return quota;
}

MILLRACE_RARE cgroup_limit cgroup_memory() {
  cgroup_limit memory;
#if defined(__linux__)
  const auto bytes = [](const std::string& path) {   // "max" reads as 0
    return static_cast<double>(std::strtoull(first_line(path).c_str(), nullptr, 10));
  };
  for (const std::string& folder : cgroup_folders()) memory.tighten(bytes(folder + "/memory.max"), folder);
  for (const std::string& folder : cgroup_folders("memory"))   // cgroup v1
    memory.tighten(bytes(folder + "/memory.limit_in_bytes"), folder);
#endif
  return memory;
}

MILLRACE_RARE std::size_t physical_memory_bytes() {
#if defined(__linux__)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
#endif
  return std::size_t{4} << 30;
}

/// Returns the number of cores in a process's affinity mask; 0 if it is unknown.
MILLRACE_RARE unsigned affinity_cores([[maybe_unused]] int process) {
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(process, sizeof mask, &mask) == 0) return static_cast<unsigned>(CPU_COUNT(&mask));
#endif
  return 0;
}

}   // namespace detail

MILLRACE_RARE unsigned usable_cores() {
  unsigned cores = detail::affinity_cores(0);
  if (cores == 0) cores = std::max(1U, std::thread::hardware_concurrency());
  if (const double quota = detail::cgroup_cores().amount; quota > 0)
    cores = std::min(cores, static_cast<unsigned>(quota + 0.999));
  return std::max(1U, cores);
}

namespace detail {

MILLRACE_RARE std::size_t usable_memory_bytes() {
  const std::size_t bytes = physical_memory_bytes();
  const double limit = cgroup_memory().amount;
  return limit > 0 && limit < static_cast<double>(bytes) ? static_cast<std::size_t>(limit) : bytes;
}

MILLRACE_RARE machine_view machine_view::now(bool parent_starts_all) {
  machine_view v{.parent_starts_all = parent_starts_all};
  const int parent = getppid();
  const std::string process = std::to_string(parent);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  v.machine_cores = online > 0 ? static_cast<unsigned>(online) : 1;
  const unsigned own = affinity_cores(0);
  v.own_cores = own > 0 ? own : v.machine_cores;
  v.parent_cores = parent > 0 ? affinity_cores(parent) : 0;
  const cgroup_limit quota = cgroup_cores(), memory = cgroup_memory();
  v.quota_cores = quota.amount;
  v.quota_is_shared = quota.is_also_of(process, "cpu");
  v.memory_bytes = usable_memory_bytes();
  const bool is_limited = memory.amount > 0 && memory.amount < static_cast<double>(physical_memory_bytes());
  v.memory_is_shared = !is_limited || memory.is_also_of(process, "memory");
  return v;
}

MILLRACE_RARE machine_part_of_rank divided(const machine_view& view, std::size_t processes) noexcept {
  const auto count = static_cast<unsigned>(std::clamp<std::size_t>(processes, 1, 1U << 20));
  const bool is_bound = view.own_cores < view.machine_cores && view.own_cores < view.parent_cores;
  const bool is_common = view.own_cores >= view.machine_cores || view.parent_starts_all ||
                         std::uint64_t{view.own_cores} * count > view.machine_cores;
  double cores = view.own_cores;
  if (!is_bound && is_common) cores /= count;
  if (view.quota_cores > 0) cores = std::min(cores, view.quota_cores / (view.quota_is_shared ? count : 1));
  return {.cores = std::max(1U, static_cast<unsigned>(count > 1 ? cores + 0.001 : cores + 0.999)),
          .memory_bytes = view.memory_bytes / (view.memory_is_shared ? count : 1)};
}

MILLRACE_RARE machine_part_of_rank share_of_machine(std::size_t processes) {
  if (processes <= 1) return {.cores = usable_cores(), .memory_bytes = usable_memory_bytes()};
  return divided(machine_view::now(std::getenv("TORCHELASTIC_RUN_ID") != nullptr), processes);
}

}   // namespace detail

}}   // namespace millrace
