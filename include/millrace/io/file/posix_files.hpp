// The system calls for reading and writing shards. They are members of a struct, so that tests can replace them.
//
//   struct failing_files : mr::detail::posix_files {
//     static ssize_t read_at(int, void*, std::size_t, off_t) noexcept { return errno = EIO, -1; }
//   };
//   mr::detail::basic_file_source<failing_files> source("train-000.tar");   // source.read_at() throws io_error
//
// Each function calls one system function and returns its result. If the result is -1, errno contains the reason.
// Threads: stateless functions; any thread.
#pragma once

#include <millrace/base/version.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the text for an errno. Unlike strerror(), it uses no shared buffer.
inline std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

/// Returns the modification time in ns since 1970.
inline std::int64_t modified_ns(const struct ::stat& status) noexcept {
#if defined(__APPLE__)
  const struct ::timespec& time = status.st_mtimespec;
#else
  const struct ::timespec& time = status.st_mtim;
#endif
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// The real system calls.
struct posix_files {
  static int open(const char* path, int flags, mode_t mode = 0) noexcept {
    return ::open(path, flags | O_CLOEXEC, mode);
  }
  static int close(int file) noexcept { return ::close(file); }
  static int stat_open(int file, struct ::stat& status) noexcept { return ::fstat(file, &status); }
  static int stat_path(const char* path, struct ::stat& status) noexcept { return ::stat(path, &status); }
  static int make_folder(const char* path) noexcept { return ::mkdir(path, 0777); }
  /// Locks the file. Waits until no other open file holds the lock. The lock is released when the file is closed or the
  /// process ends.
  static int lock(int file) noexcept { return ::flock(file, LOCK_EX); }
  /// Locks the file without waiting. Returns -1 with EWOULDBLOCK if another open file holds the lock. A duplicate of
  /// the descriptor shares the lock.
  static int try_lock(int file) noexcept { return ::flock(file, LOCK_EX | LOCK_NB); }
  static int duplicate(int file) noexcept { return ::fcntl(file, F_DUPFD_CLOEXEC, 0); }
  static ssize_t read_at(int file, void* buffer, std::size_t bytes, off_t offset) noexcept {
    return ::pread(file, buffer, bytes, offset);
  }
  static ssize_t read_parts_at(int file, const struct ::iovec* parts, int count, off_t offset) noexcept {
    return ::preadv(file, parts, count, offset);
  }
  static ssize_t write(int file, const void* data, std::size_t bytes) noexcept { return ::write(file, data, bytes); }
  static int sync(int file) noexcept { return ::fsync(file); }
  static int rename(const char* from, const char* to) noexcept { return ::rename(from, to); }
  static int unlink(const char* path) noexcept { return ::unlink(path); }
  static void will_read_forward([[maybe_unused]] int file) noexcept {
#ifdef POSIX_FADV_SEQUENTIAL
    ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);   // only advice, so a failure is harmless
#endif
  }
  static void sleep_ns(std::int64_t duration_ns) noexcept {
    struct ::timespec left{};
    left.tv_sec = static_cast<time_t>(duration_ns / 1'000'000'000);
    left.tv_nsec = static_cast<long>(duration_ns % 1'000'000'000);
    while (::nanosleep(&left, &left) == -1 && errno == EINTR) {}
  }
};

}}}   // namespace millrace::detail
