// A log file that consists of complete records.
//
//   mr::detail::append_file file({.path = "run.jsonl"});
//   file.append(record);        // one write(); if it fails, removes the part that was written
//   file.sync();                // the appended records now survive a crash of the machine
//
// When append() returns, the kernel has received the record, so a crash of the program loses no record. sync() protects
// against a crash of the machine.
// Errors: setup_error if another append_file, in this or another process, has the file open. All other errors are
// io_error. Threads: not thread-safe.
#pragma once

#include <millrace/io/file/unique_fd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Throws the io_error for a failed call. `problem` describes the call, such as "cannot open". `failure` is an errno.
[[noreturn]] void throw_file_error(const std::string& problem, const std::string& path, int failure);

/// Creates the folder and its missing parents. Throws io_error if a folder cannot be created.
void create_folders(const std::string& path);

/// Options of append_file. If `must_be_new` is true, an existing file is an error.
struct append_file_options {
  std::string path{};
  bool must_be_new = false;
};

class append_file {
 public:
  explicit append_file(append_file_options options);
  const std::string& path() const noexcept { return path_; }

  /// Returns the size of the file.
  std::uint64_t size_bytes() const;

  /// Appends one record, if possible with one write(). If a write() fails, append() removes the part of the record that
  /// is already in the file, and throws io_error.
  void append(std::string_view record);

  /// Returns the bytes [from, from + size_bytes) of the file.
  std::string read(std::uint64_t from, std::size_t size_bytes) const;

  /// Shortens the file to `size_bytes`.
  void cut(std::uint64_t size_bytes);

  /// Flushes the appended records to the disk.
  void sync();
  /// Calls sync(), but at most once per `every_ns`. `now_ns` is the time of a steady clock.
  void sync_when_due(std::int64_t now_ns, std::int64_t every_ns);
  /// Flushes the folder of the file. Without this call, a crash of the machine may lose the name of a new file. Has no
  /// effect on file systems that cannot flush folders.
  void sync_name() const;

 private:
  std::string path_;
  unique_fd file_;
  bool unsynced_ = false;
  std::int64_t synced_ns_ = 0;
};

// Repairs the end of a file of JSON lines after the writer of the file was killed.
//
// If the last line is a complete JSON object, but has no line end, repair_last_line() adds the line end. If the JSON
// object is incomplete, repair_last_line() removes the line.
// Errors: io_error. Threads: not thread-safe. Memory: the size of the last line.

/// Returns true if `line` is a complete JSON object: it ends with the brace that closes the object.
constexpr bool is_complete_json_line(std::string_view line) noexcept {
  int depth = 0;
  bool in_string = false, escaped = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (escaped) escaped = false;
    else if (in_string && c == '\\') escaped = true;
    else if (c == '"') in_string = !in_string;
    else if (!in_string && c == '{') ++depth;
    else if (!in_string && c == '}' && --depth == 0) return i + 1 == line.size();
  }
  return false;
}

/// Repairs the last line, so that the file is empty or ends with a line end.
inline void repair_last_line(append_file& file) {
  const std::uint64_t size = file.size_bytes();
  std::string tail;
  while (tail.size() < size && tail.find('\n') == std::string::npos) {
    const std::uint64_t more = std::min<std::uint64_t>(65'536, size - tail.size());
    tail.insert(0, file.read(size - tail.size() - more, more));
  }
  tail.erase(0, tail.rfind('\n') + 1);   // without a line end, rfind() returns npos, and npos + 1 is 0
  if (tail.empty()) return;
  if (is_complete_json_line(tail)) file.append("\n");
  else file.cut(size - tail.size());
}

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/append_file.inl>
#endif
