// A list of loose files as a data set whose samples can be read in any order. Each sample is one file.
//
//   mr::detail::file_data data(names, {.root_bytes = 7});
//   data.counts();                                              // 1 for each file
//   std::size_t good = data.read(samples, records, failure);     // records[i] is samples[i] for i < good
//   data.fingerprint();                                         // digest of keys and sizes, for resume points
//
// Each file counts as a shard with one sample. Therefore an order that permutes the shards permutes the samples
// completely.
// A record contains one field and the field's checksum. The name of the field is the lower-case extension of the file
// ("file" without an extension). With classes, a second field "cls" contains the number of the class as text.
// Errors of the constructor: setup_error for missing or unreadable files, and for a file without a class.
// Errors of read(): data_error for a local file that cannot be read, or whose size has changed since the start.
// io_error for a failed read from a storage. A data_error concerns only one sample.
// Threads: the constructor starts up to 32 threads and waits for them. Any number of threads may call read() at the
// same time.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/metered_file.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/measure/values/event_counts.hpp>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of file_data.
struct file_data_options {
  std::size_t root_bytes = 0;   ///< number of bytes of each name before its key
  /// Names of the classes (the first folder of each key), by number. Empty without classes.
  std::vector<std::string> classes{};
  std::uint64_t max_file_bytes = std::uint64_t{1} << 30;   ///< maximum size; a larger file is an error, and is not read
  std::size_t unreadable_at_most = 0;   ///< maximum number of missing or unreadable files at the start
  millrace::storage storage{};
};

/// The files of one data set.
class file_data {
 public:
  using item = record;

  /// Reads the sizes of all files. The comment at the top of this header lists the errors.
  file_data(std::vector<std::string> names, file_data_options o);

  /// Returns 1 for each file.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the identity of a sample.
  std::uint64_t id_of(const located_sample& s) const noexcept { return s.id(); }
  /// Returns 0, because a file_data always uses all its samples.
  std::uint64_t choice() const noexcept { return 0; }
  std::string choice_text() const { return {}; }
  /// Returns the file and the key of a sample.
  error_location location_of(const located_sample& s) const {
    const auto file = static_cast<std::size_t>(s.shard);
    return {.shard = names_[file], .key = std::string(key(file))};
  }
  /// Returns the total size of all files.
  std::uint64_t size_bytes() const noexcept { return all_bytes_; }
  /// Returns a digest of the keys, sizes and classes.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// Returns a line to print at the start, or "" if all files can be read.
  const std::string& notice() const noexcept { return notice_; }
  /// Does nothing.
  void report_reads(event_counts&) const noexcept {}
  /// Returns the meter of the reads.
  read_meter& reads() const noexcept { return reads_; }

  /// Reads `samples` into `records`. Returns the number of records before the first error. Sets `failure` to this
  /// error. Later records are valid or empty.
  std::size_t read(std::span<const located_sample> samples, std::span<record> records, std::exception_ptr& failure);
  /// Returns whether read() failed because a storage exhausted its retries.
  bool is_given_up(const std::exception_ptr& failure) const noexcept {
    return !options_.storage.is_local() && is_error_of_storage(failure);
  }

 private:
  static constexpr std::uint64_t unknown_size = ~std::uint64_t{0};

  std::string_view key(std::size_t file) const noexcept {
    return std::string_view(names_[file]).substr(options_.root_bytes);
  }
  void find_sizes();
  /// Sets the class number of each file. Throws setup_error if a file has no class.
  void find_classes();
  record read_file(std::size_t file, record_builder& build) const;
  record read_local(std::size_t file, record_builder& build) const;

  const std::vector<std::string> names_;
  const file_data_options options_;
  mutable block_pool pool_;
  mutable read_meter reads_;
  std::vector<std::uint64_t> counts_, sizes_;
  std::vector<std::uint32_t> classes_;   // class number of each file; empty without classes
  std::uint64_t all_bytes_ = 0, fingerprint_ = 0;
  std::string notice_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/file_data.inl>
#endif
