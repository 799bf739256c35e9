// Defines what posix_files.hpp declares.
#pragma once

#include <millrace/io/file/posix_files.hpp>

#include <time.h>

#include <cerrno>
#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::int64_t modified_ns(const struct ::stat& status) noexcept {
#if defined(__APPLE__)
  const struct ::timespec& time = status.st_mtimespec;
#else
  const struct ::timespec& time = status.st_mtim;
#endif
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

MILLRACE_INLINE int posix_files::open(const char* path, int flags, mode_t mode) noexcept {
  return ::open(path, flags | O_CLOEXEC, mode);
}

MILLRACE_INLINE ssize_t posix_files::read_at(int file, void* buffer, std::size_t bytes, off_t offset) noexcept {
  return ::pread(file, buffer, bytes, offset);
}

MILLRACE_INLINE ssize_t posix_files::read_parts_at(int file, const struct ::iovec* parts, int count,
                                                   off_t offset) noexcept {
  return ::preadv(file, parts, count, offset);
}

MILLRACE_INLINE void posix_files::will_read_forward([[maybe_unused]] int file) noexcept {
#ifdef POSIX_FADV_SEQUENTIAL
  ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);   // only advice: a refusal does no harm
#endif
}

MILLRACE_INLINE void posix_files::sleep_ns(std::int64_t duration_ns) noexcept {
  struct ::timespec left {};
  left.tv_sec = static_cast<time_t>(duration_ns / 1'000'000'000);
  left.tv_nsec = static_cast<long>(duration_ns % 1'000'000'000);
  while (::nanosleep(&left, &left) == -1 && errno == EINTR) {}
}

}}}  // namespace millrace::detail
