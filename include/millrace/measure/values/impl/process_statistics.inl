// Definitions for process_statistics.hpp.
#pragma once

#include <millrace/measure/values/process_statistics.hpp>

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>

#include <dirent.h>
#include <fcntl.h>

#include <cstring>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::optional<std::uint64_t> process_statistic_after(const std::string& path, const char* word) {
  std::optional<std::uint64_t> number;
  if (const auto file = open_text(path.c_str())) {
    char text[256];
    const std::size_t length = std::strlen(word);
    while (!number && std::fgets(text, sizeof text, file.get()))
      if (std::strncmp(text, word, length) == 0) number = std::strtoull(text + length, nullptr, 10);
  }
  return number;
}

MILLRACE_RARE std::optional<std::uint64_t> run_delay_of_this_thread_ns() noexcept {
#if defined(__linux__)
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[96];
  const auto length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return {};
  text[length] = '\0';
  char* on_a_core_end = text;
  static_cast<void>(std::strtoull(text, &on_a_core_end, 10));
  char* delay_end = on_a_core_end;
  const std::uint64_t delay = std::strtoull(on_a_core_end, &delay_end, 10);
  if (delay_end != on_a_core_end) return delay;
#endif
  return {};
}

MILLRACE_RARE process_statistics process_statistics::now() {
  process_statistics f;
  f.cpu_ns = static_cast<std::uint64_t>(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
#if defined(__linux__)
  for (const std::string& folder : cgroup_folders())
    if (const auto us = process_statistic_after(folder + "/cpu.stat", "throttled_usec "))
      f.throttled_ns = std::max(f.throttled_ns, 1'000 * *us);
  for (const std::string& folder : cgroup_folders("cpu"))   // cgroup v1
    if (const auto ns = process_statistic_after(folder + "/cpu.stat", "throttled_time "))
      f.throttled_ns = std::max(f.throttled_ns, *ns);
  const auto close = [](DIR* opened) { ::closedir(opened); };
  if (const std::unique_ptr<DIR, decltype(close)> folder(::opendir("/proc/self/task")); folder) {
    while (const dirent* entry = ::readdir(folder.get())) {
      if (entry->d_name[0] == '.') continue;
      const std::string line = first_line(std::string("/proc/self/task/") + entry->d_name + "/schedstat");
      unsigned long long on_a_core = 0, delay = 0;
      if (std::sscanf(line.c_str(), "%llu %llu", &on_a_core, &delay) == 2) f.run_delay_ns += delay;
    }
  }
  f.storage_bytes = process_statistic_after("/proc/self/io", "read_bytes: ");
#endif
  return f;
}

}}}   // namespace millrace::detail
