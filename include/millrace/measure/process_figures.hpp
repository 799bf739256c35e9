// Measures how the system treats this process: processor time, throttling by quota, run delay, bytes from storage.
//
//   const auto before = mr::detail::process_figures::now();
//   run_epoch();
//   const mr::detail::process_figures spent = mr::detail::process_figures::now() - before;
//
// Costs some microseconds for each thread of the process. On Linux it reads the cgroup's cpu.stat,
// /proc/self/task/N/schedstat and /proc/self/io. Values that the system does not give are 0; storage bytes are unset.
// Storage bytes are those of the whole process, and some network file systems do not count theirs.
// Errors: none. Threads: any.
#pragma once

#include <millrace/base/clock.hpp>
#include <millrace/base/machine.hpp>

#include <optional>

#if defined(__linux__)
#include <dirent.h>
#include <fcntl.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Figures of the process since its start, or their difference between two times.
struct process_figures {
  std::uint64_t throttled_ns = 0;   ///< throttled time: the largest among the cgroup and its ancestors
  std::uint64_t cpu_ns = 0;         ///< processor time of all threads together
  std::uint64_t run_delay_ns = 0;   ///< time ready to run, but not running, of all live threads together
  std::optional<std::uint64_t> storage_bytes{};   ///< bytes read from storage; unset: unknown

  /// Returns the figures so far.
  static process_figures now();

  friend process_figures operator-(process_figures later, const process_figures& earlier) noexcept {
    later.cpu_ns -= std::min(later.cpu_ns, earlier.cpu_ns);
    // The delays of threads that ended are no longer in the later sum, so it may be smaller.
    later.throttled_ns -= std::min(later.throttled_ns, earlier.throttled_ns);
    later.run_delay_ns -= std::min(later.run_delay_ns, earlier.run_delay_ns);
    if (later.storage_bytes)
      *later.storage_bytes -= std::min(*later.storage_bytes, earlier.storage_bytes.value_or(0));
    return later;
  }
};

/// Returns the number after `word` at the start of a line of a small file: "throttled_usec 120", "read_bytes: 4096".
inline std::optional<std::uint64_t> number_after(const std::string& path, const char* word) {
  std::optional<std::uint64_t> found;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char text[256];
    const std::size_t length = std::strlen(word);
    while (!found && std::fgets(text, sizeof text, file))
      if (std::strncmp(text, word, length) == 0) found = std::strtoull(text + length, nullptr, 10);
    std::fclose(file);
  }
  return found;
}

/// Returns how long the calling thread has been ready to run, but not running, since it began; nothing if the system
/// does not tell. Costs some microseconds and allocates nothing.
inline std::optional<std::uint64_t> run_delay_of_this_thread_ns() noexcept {
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

inline process_figures process_figures::now() {
  process_figures f;
  f.cpu_ns = static_cast<std::uint64_t>(read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
#if defined(__linux__)
  detail::for_each_cgroup([&](const std::string& folder) {
    if (const auto us = detail::number_after(folder + "/cpu.stat", "throttled_usec "))
      f.throttled_ns = std::max(f.throttled_ns, 1'000 * *us);
  });
  const auto look_at_v1 = [&](const std::string& folder) {
    if (const auto ns = detail::number_after(folder + "/cpu.stat", "throttled_time "))
      f.throttled_ns = std::max(f.throttled_ns, *ns);
  };
  detail::for_each_cgroup(look_at_v1, "cpu");
  if (DIR* const folder = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] == '.') continue;
      const std::string line = detail::first_line(std::string("/proc/self/task/") + entry->d_name + "/schedstat");
      unsigned long long on_a_core = 0, delay = 0;
      if (std::sscanf(line.c_str(), "%llu %llu", &on_a_core, &delay) == 2) f.run_delay_ns += delay;
    }
    ::closedir(folder);
  }
  f.storage_bytes = detail::number_after("/proc/self/io", "read_bytes: ");
#endif
  return f;
}

}}}  // namespace millrace::detail
