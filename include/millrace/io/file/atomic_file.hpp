// A new file that appears under its name only when it is complete.
//
//   mr::atomic_file file("out/train-000.tar");
//   file.append(data);
//   file.commit();        // flushes to the disk and renames; without commit() the destructor removes the file
//
// The file is written as ".<name>.<kernel>-<process>-<n>.partial" in the folder of its final path. Programs that list
// the shards of a folder skip such names. A lock shows other processes that the writer is alive (abandoned_files.hpp).
// Errors: io_error with the path and the system's reason. On an error, the temporary file is removed. Threads: not
// thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/abandoned_files.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A file that is renamed to its final path when it is complete. Only tests replace `Files`.
template <class Files = posix_files>
class atomic_file {
 public:
  /// Creates the temporary file for `path`. `stage` names the writing stage in errors.
  explicit atomic_file(std::string path, Files files = {}, const char* stage = "write_shards")
      : path_(std::move(path)), stage_(stage), files_(std::move(files)) {
    const std::size_t slash = path_.rfind('/');
    folder_ = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
    const std::string kernel = kernel_id();
    const std::string writer = (kernel.empty() ? "" : kernel + "-") + std::to_string(::getpid()) + "-";
    const std::string start = folder_ + "." + path_.substr(folder_.size()) + "." + writer;
    buffer_.reserve(buffer_bytes);   // done first, so that nothing throws after the file exists
    for (int attempt = 0; file_ == -1; ++attempt) {
      std::string name = start + std::to_string(attempt) + ".partial";
      file_ = files_.open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
      if (file_ == -1 && errno != EEXIST && errno != EINTR) fail("cannot create", errno);
      if (file_ != -1 && !is_mine()) files_.close(std::exchange(file_, -1));
      if (file_ != -1) temporary_ = std::move(name);
    }
  }
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file() { abandon(); }

  /// Appends the bytes, through a buffer of 1 MiB.
  void append(std::span<const std::byte> data) {
    if (buffer_.size() + data.size() > buffer_bytes) flush();
    if (data.size() >= buffer_bytes) write(data);
    else buffer_.insert(buffer_.end(), data.begin(), data.end());
    size_bytes_ += data.size();
  }
  void append(std::string_view text) { append(bytes_of(text)); }

  /// Flushes the file to the disk and renames it to its final name. The file then survives a crash of the machine.
  void commit() {
    flush();
    while (files_.sync(file_) != 0)
      if (errno != EINTR) fail("cannot flush to disk", errno);
    publish();
    sync_folder();
  }

  /// Renames the file to its final name without flushing it to the disk. Use it for files that can be generated again.
  /// A crash of the machine may lose the file, or leave a partial file under its name.
  void publish() {
    flush();
    // The duplicate keeps the lock until the file has its final name.
    lock_ = files_.duplicate(file_);
    if (files_.close(std::exchange(file_, -1)) != 0) fail("cannot close", errno);
    if (files_.rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename to its final name", errno);
    temporary_.clear();
    abandon();
  }

  /// Returns the bytes appended so far.
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  /// Locks the file. Returns false if another process saw the file before it was locked and now removes it as
  /// abandoned. Returns true on a file system without locks, because no other process can lock the file there.
  bool is_mine() const {
    struct ::stat status {};
    if (files_.try_lock(file_) != 0) return errno != EWOULDBLOCK;
    return files_.stat_open(file_, status) != 0 || status.st_nlink > 0;
  }

  void flush() {
    write(buffer_);
    buffer_.clear();
  }

  void write(std::span<const std::byte> data) {
    constexpr std::size_t max_bytes_per_call = std::size_t{1} << 30;
    while (!data.empty()) {
      const ssize_t written = files_.write(file_, data.data(), std::min(data.size(), max_bytes_per_call));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot write", written < 0 ? errno : ENOSPC);
      data = data.subspan(static_cast<std::size_t>(written));
    }
  }

  /// Flushes the folder, because the name survives a crash only after this call. Not every file system supports it.
  void sync_folder() {
    const int folder = files_.open(folder_.empty() ? "." : folder_.c_str(), O_RDONLY);
    if (folder == -1) return;
    const bool failed = files_.sync(folder) != 0 && errno == EIO;
    files_.close(folder);
    if (failed) fail("cannot flush to disk the folder entry of", EIO);
  }

  void abandon() noexcept {
    if (!temporary_.empty()) files_.unlink(temporary_.c_str());
    temporary_.clear();
    if (file_ != -1) files_.close(std::exchange(file_, -1));
    if (lock_ != -1) files_.close(std::exchange(lock_, -1));
  }

  [[noreturn]] void fail(std::string_view problem, int reason) {
    abandon();
    const bool is_shard = std::string_view(stage_) == "write_shards";
    throw io_error(std::string(problem) + (is_shard ? " the file: " : " the file '" + printable(path_) + "': ") +
                       reason_of(reason),
                   reason == ENOSPC || reason == EDQUOT ? "Free some space, or write somewhere else"
                                                        : "Check that the folder exists and is writable",
                   {.stage = stage_, .shard = is_shard ? path_ : std::string()});
  }

  std::string path_, folder_, temporary_;
  const char* stage_;
  Files files_;
  int file_ = -1, lock_ = -1;
  std::vector<std::byte> buffer_;
  std::uint64_t size_bytes_ = 0;
};

}}}  // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// A file that is renamed to its final path by commit(), when it is complete.
using atomic_file = detail::atomic_file<>;

}}  // namespace millrace
