// The files of a source, and the storage that contains them.
//
//   const mr::detail::file_list files({"train-000.tar", "train-001.tar"}, mr::storage());
//   files.size_bytes(0);   files.changed(0);   files.open(0, meter);
//
// The constructor requests the size and version of each file from a storage, and caches the answers. A deferred list
// sends these requests at its first use. For local files, each call reads the status of the file.
// Errors: setup_error if a storage lacks files (the message names the first three missing files). io_error if the
// status of a local file cannot be read.
// Threads: immutable; any thread.
#pragma once

#include <millrace/io/file/metered_file.hpp>
#include <millrace/io/file/name_list.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Names of files in a storage.
class file_list {
 public:
  /// Finds the files. If the search needs more than `report_after_ns`, a line on stderr reports it
  /// (sync/slow_step.hpp).
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

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/file_list.inl>
#endif
