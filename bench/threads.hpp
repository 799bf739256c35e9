// What the kernel says about each thread of this process: CPU time, and time spent ready but not run.
//
//   auto before = bench::threads_now();
//   ...
//   for (const auto& [id, t] : bench::threads_now()) use(t.name, t.cpu_ns - before[id].cpu_ns);
//
// Source: /proc/self/task/*/schedstat, three numbers: ns on a CPU, ns waiting for one, number of time slices.
#pragma once

#include <millrace/base/machine.hpp>

#include <dirent.h>

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

}  // namespace bench
