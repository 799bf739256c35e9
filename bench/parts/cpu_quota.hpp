// A quota on the CPU time of this process during the lifetime of the object, by a separate cgroup.
//
//   bench::cpu_quota half(0.5);                       // half a core for all threads together
//   if (!half.active()) ...                           // not root, or a system without the controller: nothing changed
//
// Uses cgroup v2 if the controller can be delegated, else v1. Errors: none, see active(). Threads: one such object at a
// time.
#pragma once

#include <millrace/base/machine.hpp>

#include <cstdio>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace bench {

class cpu_quota {
 public:
  explicit cpu_quota(double cores) {
    const std::string quota = std::to_string(static_cast<long>(cores * 100'000)), period = "100000";
    for (const std::string& parent : millrace::detail::cgroup_folders()) {
      if (active() || !write(parent + "/cgroup.subtree_control", "+cpu") || !create_cgroup(parent)) continue;
      if (!write(folder_ + "/cpu.max", quota + " " + period) || !enter()) drop();
    }
    for (const std::string& parent : millrace::detail::cgroup_folders("cpu")) {
      if (active() || !create_cgroup(parent)) continue;
      if (!write(folder_ + "/cpu.cfs_period_us", period) || !write(folder_ + "/cpu.cfs_quota_us", quota) || !enter())
        drop();
    }
  }
  cpu_quota(const cpu_quota&) = delete;
  cpu_quota& operator=(const cpu_quota&) = delete;
  ~cpu_quota() {
    if (!active()) return;
    write(parent_ + "/cgroup.procs", std::to_string(::getpid()));
    drop();
  }

  bool active() const noexcept { return !folder_.empty(); }

 private:
  static bool write(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "we");
    if (!file) return false;
    const bool put = std::fputs(text.c_str(), file) >= 0;
    return (std::fclose(file) == 0) && put;   // the kernel answers when the text is flushed
  }
  bool create_cgroup(const std::string& parent) {
    const std::string folder = parent + "/millrace-bench-" + std::to_string(::getpid());
    if (::mkdir(folder.c_str(), 0755) != 0) return false;
    parent_ = parent;
    folder_ = folder;
    return true;
  }
  bool enter() { return write(folder_ + "/cgroup.procs", std::to_string(::getpid())); }
  void drop() {
    ::rmdir(folder_.c_str());
    folder_.clear();
  }

  std::string parent_, folder_;
};

}  // namespace bench
