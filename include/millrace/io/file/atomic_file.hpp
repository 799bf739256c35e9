// A new file that appears under its name only when it is complete.
//
//   mr::atomic_file file("out/train-000.tar");
//   file.append(data);
//   file.commit();        // flushes to the disk and renames; without commit(), the destructor removes the file
//
// The file is written as ".<name>.<kernel>-<process>-<n>.partial" in the folder of its final path. Programs that list
// the shards of a folder skip such names. A lock shows other processes that the writer is alive (abandoned_files.hpp).
// Errors: io_error with the path and the system's reason. An error removes the temporary file. Threads: not
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
  /// leave a partial file under its name. Use this function only for files that can be generated again.
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
