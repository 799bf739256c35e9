// The files of a source, and the storage that contains them.
//
//   const mr::detail::file_list files({"train-000.tar", "train-001.tar"}, mr::storage());
//   files.size_bytes(0);   files.changed(0);   files.open(0, meter);
//
// If the storage is not local, the constructor requests the size and version of each file, and caches the answers. A
// deferred list sends these requests at its first use. For local files, each call of size_bytes() or changed() reads
// the status of the file.
// Errors: setup_error if a storage lacks files (the message names the first three missing files). io_error if the
// status of a local file cannot be read.
// Threads: immutable; any thread.
#pragma once

#include <millrace/io/file/metered_file.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// The file names of a source. One string contains the characters of all names. For each name, an array contains the
// offset in this string at which the name ends, as a number of 8 bytes.
//
// Copies of the list share this memory. Errors: none. Threads: immutable; any thread. Lifetime: a view is valid as long
// as any copy of the list exists.

/// An immutable list of names.
class name_list {
 public:
  name_list(const std::vector<std::string>& names);   // NOLINT(*-explicit-*)
  name_list(std::initializer_list<std::string> names);

  /// Returns the number of names.
  std::size_t size() const noexcept { return all_->ends.size(); }
  /// Returns the memory use of all names, in bytes.
  std::size_t bytes() const noexcept { return all_->text.size() + size() * sizeof(std::size_t); }
  /// Returns a name.
  std::string operator[](std::size_t number) const;
  /// Returns a name without copying it.
  std::string_view view(std::size_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : all_->ends[number - 1];
    return std::string_view(all_->text).substr(begin, all_->ends[number] - begin);
  }
  /// Returns all names.
  std::vector<std::string> strings() const;
  /// Returns the longest folder path with which all names begin, including its final slash. Returns "" if the names
  /// have no common folder.
  std::string_view common_folder() const noexcept;

 private:
  struct names {
    std::string text{};
    std::vector<std::size_t> ends{};   // end of each name in the text
  };

  name_list(const std::string* begin, std::size_t size);

  std::shared_ptr<const names> all_;
};

/// Names of files in a storage.
class file_list {
 public:
  /// Finds the files: requests the size and version of each file from a storage that is not local. If the requests are
  /// not complete after `report_after_ns`, a line on stderr reports their progress (sync/slow_step.hpp).
  file_list(name_list names, storage at, std::uint64_t report_after_ns = usual_report_after_ns);
  /// Returns a list that finds its files in the first call of size_bytes(), changed() or find_files().
  static file_list deferred(name_list names, storage at);

  /// Finds the files, unless the list has already found them.
  void find_files(std::uint64_t report_after_ns = usual_report_after_ns) const;
  std::size_t size() const noexcept { return names_.size(); }
  std::string name(std::size_t file) const { return names_[file]; }
  /// Returns all names.
  const name_list& names() const noexcept { return names_; }
  /// Returns the storage.
  const storage& at() const noexcept { return at_; }
  /// Returns the size of a file.
  std::uint64_t size_bytes(std::size_t file) const { return stamp(file).size_bytes; }
  /// Returns a number that changes when the file changes (file_stamp::changed).
  std::int64_t changed(std::size_t file) const { return stamp(file).changed; }
  /// Opens a file for reading from its front to its end. Throws io_error if it cannot be opened.
  std::unique_ptr<byte_source> open(std::size_t file, read_meter& meter) const;

  /// Announces to a storage that these files will be opened in this order.
  void expect(std::span<const std::size_t> files) const;

 private:
  static constexpr std::uint64_t usual_report_after_ns = 10'000'000'000;
  struct answers {
    std::once_flag once{};
    std::vector<file_stamp> stamps{};
  };

  file_list(name_list names, storage at, std::shared_ptr<answers> of_storage)
      : names_(std::move(names)), at_(std::move(at)), answers_(std::move(of_storage)) {}
  file_stamp stamp(std::size_t file) const;

  name_list names_;
  storage at_;
  std::shared_ptr<answers> answers_;   // unused for local files
};

// Sends many requests to a storage concurrently. Concurrent requests are faster, because each request mostly waits for
// the storage.
//
// Errors: if calls of `act` throw, the function still executes all other calls. Then it rethrows the exception of the
// failed call with the lowest index. Threads: starts up to `max_threads` - 1 threads and waits for them. If the system
// cannot start threads, the calling thread executes the remaining calls.

class notice_outlet;

/// Options of run_concurrently() for a list of names. If the calls are not complete after `report_after_ns`, a notice
/// reports their progress (sync/slow_step.hpp).
struct run_concurrently_options {
  const char* step;   ///< the name of the step in the notice, such as "finds files in the storage"
  name_list names;
  std::size_t max_threads = 32;
  notice_outlet* notices = nullptr;   ///< receives the notice; if null, the notice is printed to stderr
  std::uint64_t report_after_ns = 10'000'000'000;
};
void run_concurrently(const run_concurrently_options& o, const std::function<void(std::size_t)>& act);

/// Calls `act` with every index below `count`, on up to `max_threads` threads.
void run_concurrently(std::size_t count, std::size_t max_threads, const std::function<void(std::size_t)>& act);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/file_list.inl>
#endif
