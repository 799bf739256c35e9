// Other programs that use the cores: processes that do nothing but compute, for as long as the object lives.
//
//   const bench::busy_neighbours beside(2 * mr::usable_cores());
//
// They end with this process, whatever ends it. Errors: std::system_error where no process can be made. Threads: any.
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

class busy_neighbours {
 public:
  explicit busy_neighbours(std::size_t count) {
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
  busy_neighbours(const busy_neighbours&) = delete;
  busy_neighbours& operator=(const busy_neighbours&) = delete;
  ~busy_neighbours() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

}  // namespace bench
