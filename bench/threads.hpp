// The kernel's times of each thread of this process: CPU time, and time ready but not running.
//
//   auto before = bench::threads_now();
//   ...
//   for (const auto& [id, t] : bench::threads_now()) use(t.name, t.cpu_ns - before[id].cpu_ns);
//
// Source: /proc/self/task/*/schedstat, three numbers: ns on a CPU, ns waiting for one, number of time slices.
#pragma once

#include <millrace/base/machine.hpp>

#include <dirent.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace bench {

struct thread_times {
  std::string name;
  std::uint64_t cpu_ns = 0, delay_ns = 0;
};

inline std::map<int, thread_times> threads_now() {
  std::map<int, thread_times> all;
  DIR* const folder = opendir("/proc/self/task");
  if (!folder) return all;
  while (const dirent* entry = readdir(folder)) {
    const int id = std::atoi(entry->d_name);
    if (id == 0) continue;
    const std::string path = std::string("/proc/self/task/") + entry->d_name;
    const std::string stat = millrace::detail::first_line(path + "/schedstat");
    unsigned long long cpu = 0, delay = 0;
    if (std::sscanf(stat.c_str(), "%llu %llu", &cpu, &delay) != 2) continue;   // ended meanwhile
    all[id] = {millrace::detail::first_line(path + "/comm"), cpu, delay};
  }
  closedir(folder);
  return all;
}

/// CPU ns of a session: of its I/O threads, of the trainer (the first thread), and of all others.
struct session_times {
  double reading_ns = 0, workers_ns = 0, trainer_ns = 0;
};
inline session_times session_times_since(const std::map<int, thread_times>& before) {
  session_times spent;
  for (const auto& [id, now] : threads_now()) {
    const auto then = before.find(id);
    const std::uint64_t ns = now.cpu_ns - (then == before.end() ? 0 : then->second.cpu_ns);
    double& of = now.name == "millrace-read" ? spent.reading_ns : id == getpid() ? spent.trainer_ns : spent.workers_ns;
    of += static_cast<double>(ns);
  }
  return spent;
}

}   // namespace bench
