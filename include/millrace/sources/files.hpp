// files: reads loose files, such as a folder of images, in an exact order. millrace.hpp does not include this header.
//
//   #include <millrace/files.hpp>
//   auto flow = mr::files("train/**/*.jpg", {.seed = 7, .folders_are_classes = true}) | mr::shuffle({.window = 1})
//             | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 64});
//
// The items are records, so a map function for shards() also works for files(). r.shard() is the complete path of the
// file. r.key() is the path without its fixed part, such as "cat/1.jpg". By default, the fixed part consists of the
// folders before the first glob. The option `root` replaces this default. One field contains the bytes of the file. The
// name of the field is the extension of the file in lower case: r["jpg"]. `names` is a pattern, a folder, or a list of
// paths. A pattern may contain braces, "::" and the globs * ? [..] and **, as for list_shards(). A folder selects all
// files in the folder and its subfolders. The paths of a list are used literally. Globs match only files, and skip
// names that begin with a dot. The files of each glob and folder are sorted by the bytes of their paths.
// Classes: with folders_are_classes, the first folder of the key is the class. The field "cls" contains the number of
// the class as text: r["cls"].as<std::int32_t>(). The folder names are sorted, and the classes are numbered from 0 in
// this order. folder_classes() returns the sorted names. To use other names or another order, for example those of the
// training set, set `classes`.
// Order: exact, as for shards() with an index, but without index files. Each file counts as a shard with one sample,
// and a shuffle always permutes the shards. Therefore even a shuffle with a window of 1 permutes all files. A run can
// resume after any batch. A resume point is valid only if the keys and sizes of all files are unchanged.
// Every sample must become exactly one row. Therefore these stages are errors: expand, filter, take, bucket, pack, and
// a shuffle that does not directly follow files().
// Errors: setup_error if no file matches, or if more than unreadable_at_most files cannot be read; io_error for an
// unreadable folder. If a file disappears, becomes unreadable or changes its size during the run, its batch fails with
// a data_error. With on_damage, the file is one damaged sample.
// Threads: I/O threads read the files. Cost: three system calls for each file at the start. If you have millions of
// small files, write them into shards instead.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/metered_file.hpp>
#include <millrace/io/file/read_file.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record_builder.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// A list of loose files as a data set whose samples can be read in any order. Each sample is one file.
//
// Each file counts as a shard with one sample. Therefore an order that permutes the shards permutes the samples
// completely.
// A record contains one field and the field's checksum. The name of the field is the lower-case extension of the file
// ("file" without an extension). With classes, a second field "cls" contains the number of the class as text.
// Errors of the constructor: setup_error for missing or unreadable files, and for a file without a class.
// Errors of read(): data_error if a local file cannot be read, if a file is larger than max_file_bytes, or if its size
// has changed since the start. io_error if a read from a storage fails. A data_error concerns only one sample.
// Threads: the constructor starts up to 32 threads and waits for them. Any number of threads may call read() at the
// same time.

/// Options of file_data.
struct file_data_options {
  std::size_t root_bytes = 0;   ///< length of the part of each name that precedes the key, in bytes
  /// Names of the classes. The index of a name is the number of the class. The class of a file is the first folder of
  /// its key. If the list is empty, files have no class.
  std::vector<std::string> classes{};
  std::uint64_t max_file_bytes = std::uint64_t{1} << 30;   ///< maximum size; a larger file is an error, and is not read
  std::size_t unreadable_at_most = 0;   ///< maximum number of missing or unreadable files at the start
  millrace::storage storage{};
};

/// The files of one data set.
class file_data {
 public:
  using item = record;

  /// Reads the sizes of all files. The comment before this class lists the errors.
  file_data(std::vector<std::string> names, file_data_options o);

  /// Returns 1 for each file.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the identity of a sample.
  std::uint64_t id_of(const located_sample& s) const noexcept { return s.id(); }
  /// Returns the digest of the choice of samples: 0, because all files are used.
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
  /// Does nothing, because a file_data has no events to report.
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

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of files().
struct files_options {
  std::uint64_t seed = 0;               ///< seed of the shuffle and of all random numbers
  bool folders_are_classes = false;     ///< adds a field "cls": the class number of the key's first folder
  std::vector<std::string> classes{};   ///< names of the classes, by number; implies folders_are_classes
  /// The prefix that is removed from each path to form its key. By default, it consists of the folders before the first
  /// glob. For a list, nothing is removed by default.
  std::string root{};
  /// Returns whether to use the file with this key. By default, all files are used.
  std::function<bool(std::string_view key)> where{};
  std::uint64_t max_file_bytes = std::uint64_t{1} << 30;   ///< maximum size; a larger file is an error, and is not read
  /// Maximum number of missing or unreadable files at the start. Each of them is a damaged sample in the run. Therefore
  /// set on_damage, too: otherwise the first such file ends the run.
  std::size_t unreadable_at_most = 0;
  millrace::storage storage{};   ///< storage that contains the files
};

namespace detail {

/// The files that the user's pattern or list selects. The files are not checked yet.
struct named_files {
  std::vector<std::string> paths;
  std::size_t root_bytes = 0;   ///< length of the part of each path that precedes the key, in bytes
};

/// Returns the files of a pattern, and the length of its fixed part.
named_files find_files(std::string_view pattern, const files_options& o);
/// Returns the files of a list.
named_files find_files(std::vector<std::string> names, const files_options& o);

/// Returns the names of the first folders of all keys, sorted and without duplicates.
std::vector<std::string> classes_of(const named_files& files);

/// The source that files() returns.
class files_source {
 public:
  using item = record;
  using planned = indexed_run<file_data>;

  files_source(named_files files, const files_options& o);

  owner<planned_run> plan(const indexed_run_options& o) const { return make_owner<planned>(data_, o); }

  // Every source needs these members. open() is only declared, because the session calls plan() instead.
  std::size_t shards() const noexcept { return data_->counts().size(); }
  planned::source_type::reader open(std::size_t shard, std::uint64_t epoch) const;

 private:
  std::shared_ptr<file_data> data_;
};

}   // namespace detail

/// Returns a flow of records, one for each file, in an exact order. `names` is a pattern, a folder or a list of paths.
/// Throws setup_error if no file matches, or if more than unreadable_at_most files cannot be read. Throws io_error if a
/// folder cannot be read.
template <detail::file_names Names = std::vector<std::string>>
auto files(const Names& names, const files_options& options = {}) {
  using source = detail::files_source;
  auto matches = detail::find_files(detail::names_of(names), options);
  return detail::flow<record, source>{{}, source(std::move(matches), options), options.seed};
}

// clang-format off
/// Selected if the second argument is not an options object. The compiler then shows the error message of this
/// overload.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, files_options>)
__attribute__((unavailable("millrace: the second argument of files() is its options. Name the option, such as "
                           "files(names, {.seed = 7}); several names are one list.")))
detail::broken_flow files(const Names&, const Other&);
// clang-format on

/// Returns the names of the classes of files(names, {.folders_are_classes = true}), in the order of their numbers.
template <detail::file_names Names = std::vector<std::string>>
std::vector<std::string> folder_classes(const Names& names, const files_options& options = {}) {
  if (!options.classes.empty()) return options.classes;
  return detail::classes_of(detail::find_files(detail::names_of(names), options));
}

}}   // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/files.inl instantiates these
#include <millrace/read/stage/shard_read_stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class indexed_source<file_data, exact_order>;
extern template class indexed_run<file_data>;
extern template class reorder_buffer<indexed_source<file_data, exact_order>>;
extern template class read_stage_base<indexed_source<file_data, exact_order>>;
extern template class shard_read_stage<indexed_source<file_data, exact_order>>;

}}}   // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/files.inl>
#endif
