// files: reads loose files, such as a folder of images, in an exact order. millrace.hpp does not include this header.
//
//   #include <millrace/files.hpp>
//   auto flow = mr::files("train/**/*.jpg", {.seed = 7, .folders_are_classes = true}) | mr::shuffle({.window = 1})
//             | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 64});
//
// The items are records, so a map function for shards() also works for files(). r.shard() is the complete path of the
// file. r.key() is the path without its fixed part, such as "cat/1.jpg". By default, the fixed part ends before the
// first glob. The option `root` replaces this default. One field contains the bytes of the file. The name of the field
// is the extension of the file in lower case: r["jpg"].
// `names` is a pattern, a folder, or a list of paths. A pattern may contain braces, "::" and the globs * ? [..] and **,
// as for list_shards(). A folder selects all files in the folder and its subfolders. The paths of a list are used
// literally. Globs match only files, and skip names that begin with a dot. The files of each glob and folder are sorted
// by the bytes of their paths.
// Classes: with folders_are_classes, the first folder of the key is the class. The field "cls" contains the number of
// the class as text: r["cls"].as<std::int32_t>(). Classes are numbered from 0 in the sorted order of the folder names,
// which folder_classes() returns. To use other names or another order, for example those of the training set, set
// `classes`.
// Order: exact, as for shards() with an index, but without index files. A shuffle with any window permutes all files. A
// run can resume after any batch. A resume point is valid only if the keys and sizes of all files are unchanged.
// Every sample must become exactly one row. Therefore these stages are errors: expand, filter, bucket, pack, and a
// shuffle that does not directly follow files().
// Errors: setup_error if no file matches, or if more than unreadable_at_most files cannot be read; io_error for an
// unreadable folder. If a file disappears, becomes unreadable or changes its size during the run, its batch fails with
// a data_error. With on_damage, the file is one damaged sample.
// Threads: I/O threads read the files. Cost: three system calls for each file at the start. If you have millions of
// small files, write them into shards instead.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/file_data.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of files().
struct files_options {
  std::uint64_t seed = 0;               ///< seed of the shuffle and of all random numbers
  bool folders_are_classes = false;     ///< adds a field "cls": the class number of the key's first folder
  std::vector<std::string> classes{};   ///< names of the classes, by number; if set, folders_are_classes is true
  /// The prefix that is removed from each path to form its key. By default, this is the part before the first glob. For
  /// a list, nothing is removed by default.
  std::string root{};
  /// Returns whether to use the file with this key. By default, all files are used.
  std::function<bool(std::string_view key)> where{};
  std::uint64_t max_file_bytes = std::uint64_t{1} << 30;   ///< maximum size; a larger file is an error, and is not read
  /// Maximum number of missing or unreadable files at the start. Use it together with on_damage.
  std::size_t unreadable_at_most = 0;
  millrace::storage storage{};   ///< storage that contains the files
};

namespace detail {

/// The files that the user's pattern or list selects. The files are not checked yet.
struct named_files {
  std::vector<std::string> paths;
  std::size_t root_bytes = 0;   ///< number of bytes of each path before its key
};

/// Returns the files of a pattern, and the length of its fixed part.
named_files find_files(std::string_view pattern, const files_options& o);
/// Returns the files of a list.
named_files find_files(std::vector<std::string> names, const files_options& o);

/// Returns the sorted first folders of the keys.
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
/// Throws setup_error if no file exists or a file cannot be read, and io_error if a folder cannot be read.
template <detail::file_names Names = std::vector<std::string>>
auto files(const Names& names, const files_options& options = {}) {
  using source = detail::files_source;
  auto matches = detail::find_files(detail::names_of(names), options);
  return detail::flow<record, source>{{}, source(std::move(matches), options), options.seed};
}

// clang-format off
/// Overload for a second argument that is not an options object. The compiler shows its error message.
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
