// Owns a file descriptor and closes it.
//
//   mr::detail::unique_fd file(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!file) fail(errno);
//   ::fsync(file.get());
//
// Errors: none. The destructor ignores errors of close(). Therefore call fsync() on a written file before the
// destructor runs. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <unistd.h>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A file descriptor, or no file (-1).
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int file) noexcept : file_(file) {}
  unique_fd(unique_fd&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~unique_fd() {
    if (file_ != -1) ::close(file_);
  }

  /// Returns whether there is a file.
  explicit operator bool() const noexcept { return file_ != -1; }
  /// Returns the descriptor, or -1 without a file.
  int get() const noexcept { return file_; }
  /// Returns the descriptor. The caller must close it.
  [[nodiscard]] int release() noexcept { return std::exchange(file_, -1); }

 private:
  int file_ = -1;
};

}}}   // namespace millrace::detail
