// A log file that only ever holds whole records.
//
//   mr::detail::append_file file({.path = "run.jsonl"});
//   file.append(record);        // one write(); a record that does not fit is cut off again
//   file.sync();                // the appended records now survive a crash of the machine
//
// The kernel has the record when append() returns, so a crash of the program loses no record. sync() protects against
// a crash of the machine.
// Errors: setup_error if another log has the file open; io_error for everything else. Threads: one.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/unique_fd.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Throws the io_error for a failed call on `path`; `failure` is an errno.
[[noreturn]] inline void throw_file_error(const std::string& what, const std::string& path, int failure) {
  throw io_error(what + " '" + printable(path) + "': " + std::strerror(failure),
                 failure == ENOSPC || failure == EDQUOT ? "Make room on the disk; later records are tried again"
                                                        : "Check that the path exists and may be written");
}

/// Creates the folder and its missing parents. Throws io_error if one cannot be created.
inline void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct stat found {};
    if (::mkdir(part.c_str(), 0777) != 0 && (::stat(part.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)))
      throw_file_error("cannot make the folder", part, errno == 0 ? ENOTDIR : errno);
    if (end == std::string::npos) return;
  }
}

/// Options of append_file; with `must_be_new` an existing file is an error.
struct append_file_options {
  std::string path{};
  bool must_be_new = false;
};

class append_file {
 public:
  explicit append_file(append_file_options options) : path_(std::move(options.path)) {
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (options.must_be_new ? O_EXCL : 0);
    file_ = unique_fd(::open(path_.c_str(), flags, 0666));
    if (!file_) throw_file_error("cannot open", path_, errno);
    // A file system without locks reports other errors. They are ignored: the log also works without a lock.
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw setup_error("another log writes to '" + printable(path_) + "'", "Give each log and each rank its own file");
  }
  const std::string& path() const noexcept { return path_; }

  /// Returns the size of the file.
  std::uint64_t size_bytes() const {
    struct stat found {};
    if (::fstat(file_.get(), &found) != 0) throw_file_error("cannot ask for the size of", path_, errno);
    return static_cast<std::uint64_t>(found.st_size);
  }

  /// Appends one record with one write(). If the system takes only a part (full disk, signal), the rest is written
  /// too. If that fails, the part is cut off again and io_error is thrown.
  void append(std::string_view record) {
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

  /// Returns the bytes [from, from + size_bytes) of the file.
  std::string read(std::uint64_t from, std::size_t size_bytes) const {
    std::string buffer(size_bytes, '\0');
    std::size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t n =
          ::pread(file_.get(), buffer.data() + done, buffer.size() - done, static_cast<off_t>(from + done));
      if (n > 0) done += static_cast<std::size_t>(n);
      else if (n == 0 || errno != EINTR) throw_file_error("cannot read", path_, n == 0 ? EIO : errno);
    }
    return buffer;
  }

  /// Shortens the file to `size_bytes`.
  void cut(std::uint64_t size_bytes) {
    if (::ftruncate(file_.get(), static_cast<off_t>(size_bytes)) != 0) throw_file_error("cannot shorten", path_, errno);
  }

  /// Flushes the appended records to the disk; does nothing if there are none.
  void sync() {
    if (!std::exchange(unsynced_, false)) return;
    // Pipes and some devices cannot be flushed, and need not be.
    if (::fdatasync(file_.get()) != 0 && errno != EINVAL && errno != EROFS)
      throw_file_error("cannot flush", path_, errno);
  }
  /// Calls sync() if at least `every_ns` have passed since it last did so. `now_ns` comes from a steady clock.
  void sync_when_due(std::int64_t now_ns, std::int64_t every_ns) {
    if (now_ns - synced_ns_ < every_ns) return;
    synced_ns_ = now_ns;
    sync();
  }

 private:
  std::string path_;
  unique_fd file_;
  bool unsynced_ = false;
  std::int64_t synced_ns_ = 0;
};

}}}  // namespace millrace::detail
