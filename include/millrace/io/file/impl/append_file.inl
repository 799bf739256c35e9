// Definitions for append_file.hpp.
#pragma once

#include <millrace/io/file/append_file.hpp>

#include <millrace/base/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void throw_file_error(const std::string& problem, const std::string& path, int failure) {
  throw io_error(problem + " '" + printable(path) + "': " + std::strerror(failure),
                 failure == ENOSPC || failure == EDQUOT ? "Free some disk space. Later records are then written"
                                                        : "Check the path and its permissions");
}

MILLRACE_RARE void create_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat status{};
    if (::mkdir(part.c_str(), 0777) != 0 && (::stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)))
      throw_file_error("cannot create the folder", part, errno == 0 ? ENOTDIR : errno);
    if (end == std::string::npos) return;
  }
}

MILLRACE_RARE append_file::append_file(append_file_options options) : path_(std::move(options.path)) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (options.must_be_new ? O_EXCL : 0);
  while (!(file_ = unique_fd(::open(path_.c_str(), flags, 0666))))
    if (errno != EINTR) throw_file_error("cannot open", path_, errno);
  // A file system without locks reports other errors. They are ignored, because the log also works without a lock.
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw setup_error("another log already writes to '" + printable(path_) + "'",
                      "Use a different file for each log and each rank");
}

MILLRACE_RARE std::uint64_t append_file::size_bytes() const {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) throw_file_error("cannot get the size of", path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

MILLRACE_RARE void append_file::append(std::string_view record) {
  std::size_t done = 0;
  unsynced_ = true;
  while (done < record.size()) {
    const ssize_t n = ::write(file_.get(), record.data() + done, record.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      const int failure = n == 0 ? EIO : errno;
      if (done > 0) cut(size_bytes() - done);
      throw_file_error("cannot write to", path_, failure);
    }
  }
}

MILLRACE_RARE std::string append_file::read(std::uint64_t from, std::size_t size_bytes) const {
  std::string buffer(size_bytes, '\0');
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t n = ::pread(file_.get(), buffer.data() + done, buffer.size() - done, static_cast<off_t>(from + done));
    if (n > 0) done += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR) throw_file_error("cannot read", path_, n == 0 ? EIO : errno);
  }
  return buffer;
}

MILLRACE_RARE void append_file::cut(std::uint64_t size_bytes) {
  while (::ftruncate(file_.get(), static_cast<off_t>(size_bytes)) != 0)
    if (errno != EINTR) throw_file_error("cannot truncate", path_, errno);
}

MILLRACE_RARE void append_file::sync() {
  if (!std::exchange(unsynced_, false)) return;
  // Pipes and some devices cannot be flushed, and need no flush.
  while (::fdatasync(file_.get()) != 0) {
    if (errno == EINVAL || errno == EROFS) return;
    if (errno != EINTR) throw_file_error("cannot flush", path_, errno);
  }
}

MILLRACE_RARE void append_file::sync_when_due(std::int64_t now_ns, std::int64_t every_ns) {
  if (now_ns - synced_ns_ < every_ns) return;
  synced_ns_ = now_ns;
  sync();
}

MILLRACE_RARE void append_file::sync_name() const {
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const unique_fd opened(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened && ::fsync(opened.get()) != 0 && errno == EIO)
    throw_file_error("cannot flush the folder that contains", path_, EIO);
}

}}}   // namespace millrace::detail
