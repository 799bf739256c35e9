// A new file that appears under its name only when it is complete.
//
//   mr::atomic_file file("out/train-000.tar");
//   file.append(data);
//   file.commit();        // flushes to the disk and renames; without commit(), the destructor removes the file
//
// The file is written as ".<name>.<kernel>-<process>-<n>.partial" in the folder of its final path. <kernel> is the
// result of kernel_id(). <process> is the id of the process. <n> distinguishes the temporary files that one process
// writes for the same path. Programs that list the shards of a folder skip such names. A lock shows other processes
// that the writer is alive.
// Errors: io_error with the path and the system's reason. An error removes the temporary file. Threads: not
// thread-safe.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/posix_files.hpp>

#include <dirent.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Removal of abandoned files. An abandoned file is a temporary file of an atomic_file whose writer was killed.
//
// A live writer holds a lock on its file. The system releases the lock when the process ends. The file name contains
// the id of the writer's kernel (kernel_id()), because other machines might not see the lock. Only files with the id of
// the local kernel are removed. Files of other machines, and files from before a reboot, stay.
// Errors: none. A file that cannot be examined stays. Threads: any thread.

/// Returns the first twelve hexadecimal digits of the running kernel's boot id. Returns "" on a system without this id.
template <class Files = posix_files>
std::string kernel_id(const Files& files = {}) {
  std::string id;
  const int file = files.open("/proc/sys/kernel/random/boot_id", O_RDONLY);
  if (file == -1) return id;
  char text[36];
  const ssize_t size = files.read_at(file, text, sizeof text, 0);
  files.close(file);
  for (ssize_t i = 0; i < size && id.size() < 12; ++i)
    if (text[i] != '-') id += text[i];
  return id;
}

/// Returns the final name of a temporary file that was written under the kernel `kernel`. Returns "" for other files.
inline std::string_view final_name_of(std::string_view temporary, std::string_view kernel) noexcept {
  constexpr std::string_view end = ".partial";
  if (kernel.empty() || !temporary.starts_with('.') || !temporary.ends_with(end)) return {};
  temporary.remove_prefix(1);
  temporary.remove_suffix(end.size());
  const std::size_t dot = temporary.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view writer = temporary.substr(dot + 1);   // kernel-process-n
  const bool is_own = writer.starts_with(kernel) && writer.substr(kernel.size()).starts_with('-');
  return is_own ? temporary.substr(0, dot) : std::string_view{};
}

/// Removes the temporary file, unless its writer still owns the lock or has renamed the file.
template <class Files>
void remove_abandoned_file(const std::string& path, const Files& files) noexcept {
  const int file = files.open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
  if (file == -1) return;
  struct ::stat locked{}, now{};
  if (files.try_lock(file) == 0 && files.stat_open(file, locked) == 0 && S_ISREG(locked.st_mode) &&
      files.stat_path(path.c_str(), now) == 0 && now.st_ino == locked.st_ino && now.st_dev == locked.st_dev)
    files.unlink(path.c_str());
  files.close(file);
}

/// Removes each abandoned file in `folder`, if `is_match` returns true for the final name of the file. `folder` is ""
/// or ends with a slash.
template <class Files, class Match>
void remove_abandoned_files(const std::string& folder, const Files& files, const Match& is_match) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.empty() ? "." : folder.c_str()), close);
  const std::string kernel = kernel_id(files);
  if (!opened || kernel.empty()) return;
  while (const dirent* const item = ::readdir(opened.get()))
    if (const std::string_view name = final_name_of(item->d_name, kernel); !name.empty() && is_match(name))
      remove_abandoned_file(folder + item->d_name, files);
}

/// A file that is renamed to its final path when it is complete. Only tests replace `Files`.
template <class Files = posix_files>
class atomic_file {
 public:
  /// Creates the temporary file for `path`. `stage` is the name of the stage in errors, such as "write_shards".
  explicit atomic_file(std::string path, Files files = {}, const char* stage = "write_shards");
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;
  ~atomic_file();

  /// Appends the bytes, through a buffer of 1 MiB.
  void append(std::span<const std::byte> data);
  void append(std::string_view text);

  /// Flushes the file to the disk and renames it to its final name. After that, the file survives a crash of the
  /// machine.
  void commit();

  /// Renames the file to its final name without flushing it to the disk. A crash of the machine may lose the file, or
  /// leave a partial file under the final name. Use this function only for files that can be generated again.
  void publish();

  /// Returns the bytes appended so far.
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  /// Locks the file. Returns false if another process considered the file abandoned, and locked or removed it. Returns
  /// true on a file system without locks.
  bool is_mine() const;

  void flush();

  void write(std::span<const std::byte> data);

  /// Flushes the folder, because otherwise a crash may lose the new name.
  void sync_folder();

  void abandon() noexcept;

  [[noreturn]] void fail(std::string_view problem, int reason);

  std::string path_, folder_, temporary_;
  const char* stage_;
  Files files_;
  int file_ = -1, lock_ = -1;
  std::vector<std::byte> buffer_;
  std::uint64_t size_bytes_ = 0;
};

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// A file that commit() renames to its final path when it is complete.
using atomic_file = detail::atomic_file<>;

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/atomic_file.inl>
#endif
