// Other programs that use the cores: processes that only compute, during the lifetime of the object.
//
//   const bench::busy_neighbors neighbors(2 * mr::usable_cores());
//
// They end with this process, even if it is killed. Errors: std::system_error if fork() fails. Threads: any.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <system_error>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

class busy_neighbors {
 public:
  explicit busy_neighbors(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == -1) throw std::system_error(errno, std::generic_category(), "fork");
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (std::atomic<unsigned> n{0};;) n.fetch_add(1, std::memory_order_relaxed);
      }
      children_.push_back(child);
    }
  }
  busy_neighbors(const busy_neighbors&) = delete;
  busy_neighbors& operator=(const busy_neighbors&) = delete;
  ~busy_neighbors() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace bench
