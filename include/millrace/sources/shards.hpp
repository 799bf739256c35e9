// shards: WebDataset tar shards as the source of a flow.
//
//   auto train = mr::shards("train-{000..146}.tar", {.seed = 7});          // braces, "a.tar::b.tar", globs, folders
//   auto val = mr::shards("val/", {.fields = {"jpg;png", "cls"}});         // other fields are not read into memory
//   auto odd = mr::shards({"odd{name}.tar", "b.tar"});   // a list, or any range of names, used literally
//   auto exact = mr::shards("train-*.tar", {.index = mr::index::required});   // an error without an index
//
// Delivers records (item/record.hpp), one per sample (consecutive members with the same key). Reads plain tar files,
// and files compressed with gzip, zstd, bzip2, xz or lz4. The content of a file, not its name, determines the
// compression. The call checks immediately that all shards exist.
//
// Order with an index: exact. The order is the same for any number of workers and ranks. The number of ranks must
// divide the global batch. A run can resume after any batch, and reads no sample again. Each shard has an index of its
// samples. The first session reads the headers of the shards, builds the indexes and saves them in files
// (io/index/format/index_file.hpp). If a file cannot be written, its index stays in memory, and the order is the same.
// Order without an index: the shards are streamed. Each rank reads its own shards, and a resumed run reads samples
// again (read/run/replayed_run.hpp). Shards are streamed in three cases: they are compressed, `.index` is
// mr::index::off, or the flow has expand, filter, take, pack, bucket, or a shuffle that does not follow shards()
// directly.
//
// The options `.only`, `.without`, `.where` and `.repeats` choose samples by their keys before any sample is read.
// These options require an index, and the order of the chosen samples is exact, too. If a list contains a key that no
// shard contains, a notice at the start reports it.
// Errors: setup_error for missing shards, and for a required index that cannot be built. With an index, a damaged shard
// is an error of the session's constructor, unless the session has on_damage. Without an index, all complete samples
// before the damage are delivered first. Both errors contain the shard, the offset and the last good key. With an
// index, if the bytes of a payload differ from those of its first read, the batch fails, unless the session has
// on_damage. If a shard has no end marker, but ends after a complete member, it counts as complete. Such a shard is an
// error in two cases: `.strict` is set, or a sidecar file of the shard (such as a DALI index or sizes.json) states a
// larger number of samples. A notice reports the first shard without an end marker.
// Threads: several I/O threads read shards at the same time. Without an index, each shard is read by one thread at a
// time. Copies of a flow share the indexes.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/index/choice/key_list.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/record.hpp>
#include <millrace/read/run/indexed_run_options.hpp>
#include <millrace/read/run/planned_run.hpp>
#include <millrace/read/stage/shard_read_stage.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Controls whether shards() uses an index of the samples. An exact order requires an index.
enum class index : std::uint8_t {
  automatic,   ///< uses an index if the shards are plain tar files and each sample becomes one row
  required,    ///< always uses an index; if that is not possible, the session throws setup_error
  off          ///< never uses an index; the shards are streamed
};

/// Options of shards().
struct shards_options {
  std::uint64_t seed = 0;                               ///< seed of the shuffle and of all random numbers
  millrace::index index = millrace::index::automatic;   ///< whether an index is used; with an index, the order is exact
  std::vector<std::string> fields{};   ///< fields to read, such as "cls" or the alternatives "jpg;png"; by default all
  /// Fields that a sample must have. Samples without them are omitted. "jpg;png" requires the field jpg or the field
  /// png. {"jpg;png", "txt"} also requires the field txt.
  required_fields having{};
  shard_limits limits{};   ///< limits on the content of a shard
  bool strict = false;     ///< whether a missing end marker is an error; otherwise a notice reports the first one
  /// The storage of the shards, their indexes, and the sidecar files that state their numbers of samples. Existing
  /// indexes in the storage are used. To build missing indexes, the session reads the shards. New indexes of remote
  /// shards are saved in index_folder, or else in the cache of the storage, if it has one.
  millrace::storage storage{};
  std::string index_folder{};   ///< folder of the index files; by default, indexes are stored next to local shards
  /// A file in the storage that describes all shards (examples/inspect --set-index). With this file, the session starts
  /// without opening each shard. By default, the session uses the file set.millrace-index next to remote shards, if it
  /// exists. Local shards have no default file.
  std::string set_index{};
  /// Receives the progress of a long listing, and a warning if indexes cannot be saved. By default, these notices are
  /// printed to stderr.
  notice_function notice{};
  /// For a session with on_damage: the maximum number of shards that are damaged or missing at the start. A shard may
  /// be missing only if its index exists. By default, any number of shards may be damaged, and no shard may be missing.
  std::optional<std::size_t> damaged_shards_at_most{};
  std::optional<key_list> only{};   ///< keys of the samples to use; by default all are used
  key_list without{};               ///< keys of the samples to omit
  /// Returns whether to use the sample with this key in this shard. By default, all samples are used.
  std::function<bool(std::string_view key, std::string_view shard)> where{};
  /// Returns how often a pass contains the sample. 0 omits the sample. The default is 1.
  std::function<std::size_t(std::string_view key, std::string_view shard)> repeats{};
  /// Returns the entry points of a field (offsets where its decoder may start), or no bytes. Several threads call this
  /// function at the same time. By default, existing entry points in the indexes are used, and none are created.
  std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)> entries{};
};

namespace detail {

class shard_data;

/// The source that shards() returns: tar shards, read through their indexes or from start to end.
class shards_source {
 public:
  using item = record;
  static constexpr bool same_every_pass = true;
  static constexpr bool also_streams = true;

  shards_source(const name_list& names, const shards_options& options);

  // For a run with an index:
  /// Returns whether a run uses the indexes. The first call that returns true reads or builds the indexes. Throws
  /// setup_error if required indexes cannot be built, and the errors of shard_data.
  bool uses_index(const index_use& use) const;
  /// Returns whether an option requires the indexes.
  bool needs_index() const noexcept;
  /// Returns whether uses_index() calls functions of the user: notice, where or repeats.
  bool calls_functions() const noexcept;
  /// Returns the reason why the shards are streamed although the option is `automatic`, or "" if there is nothing to
  /// report.
  std::string why_streamed() const;
  /// Returns a run that uses the indexes. Requires that uses_index() returned true for a session of the same kind (with
  /// or without on_damage).
  owner<planned_run> plan(const indexed_run_options& o) const;
  /// Returns the read stage of a run that plan() returned.
  owner<read_stage> read_by_index(planned_run& run, shard_read_stage_options o, sample_sink<record>& first) const;
  /// Returns the indexed shards. Requires that uses_index() returned true for a session of the same kind.
  std::shared_ptr<shard_data> data(bool tolerates_damage) const;

  // For a streamed run:
  std::size_t shards() const noexcept { return files_.size(); }
  std::string shard_name(std::size_t shard) const { return files_.name(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const { return files_.size_bytes(shard); }
  std::int64_t shard_modified_ns(std::size_t shard) const { return files_.changed(shard); }
  /// Returns a digest of .having, or 0 if all samples are used.
  std::uint64_t choice() const noexcept { return having().digest(); }
  /// Returns the fields that a sample must have.
  const required_fields& having() const noexcept { return reader_options_.having; }
  shard_reader open(std::size_t shard, std::uint64_t) const;
  /// Informs the storage that these shards will be opened in this order.
  void expect(std::span<const std::size_t> shards) const { files_.expect(shards); }
  /// Returns the number of samples that a sidecar file states for the shard, or 0 without such a file.
  std::uint64_t stated_samples(std::size_t shard) const;
  /// Returns the location of another part of a sample whose members are not adjacent in its shard. Reads the headers of
  /// the shard again.
  std::optional<other_piece> other_piece_of(const error_location& sample) const;
  /// Returns the meter of all reads of this source.
  read_meter& reads() const noexcept { return *reads_; }
  /// Returns a copy of this source that records its reads in `meter`.
  shards_source watched_in(std::shared_ptr<read_meter> meter) const;

 private:
  static constexpr std::uint64_t max_stated_samples = std::uint64_t{1} << 24;   // a larger number is ignored

  struct indexes;

  file_list files_;
  shard_reader_options reader_options_;
  // For each shard, whether its missing end marker was reported.
  std::shared_ptr<std::vector<std::atomic<bool>>> without_marker_;
  std::shared_ptr<block_pool> pool_;
  std::shared_ptr<read_meter> reads_;
  std::shared_ptr<indexes> indexes_;   // shared by copies
};

}   // namespace detail

/// Returns a flow of records. `names` is a pattern or a list, as for list_shards(). Throws setup_error if a shard is
/// missing.
template <detail::file_names Names = std::vector<std::string>>
MILLRACE_RARE auto shards(const Names& names, const shards_options& options = {}) {
  using source = detail::shards_source;
  detail::listed_folder_rule rule = detail::shard_folder_rule;
  rule.unreadable_at_most = options.damaged_shards_at_most.value_or(0);
  const detail::shard_listing_options listing{.rule = rule, .at = options.storage, .notice = options.notice};
  return detail::flow<record, source>{{}, source(detail::list_files(names, listing), options), options.seed};
}

// clang-format off
/// Overload for a second argument that is not an options object. The compiler shows its error message.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, shards_options>)
__attribute__((unavailable("millrace: the second argument of shards() is its options. Name the option, such as "
                           "shards(names, {.seed = 7}); several names are one list.")))
detail::broken_flow shards(const Names&, const Other&);
// clang-format on

}}   // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/shards.inl instantiates these
#include <millrace/read/run/replayed_run.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class reorder_buffer<shards_source>;
extern template class read_stage_base<shards_source>;
extern template class shard_read_stage<shards_source>;
extern template class interleaved_read_stage<shards_source>;
extern template class lane_shard_counts<shards_source>;
extern template class counted_lane_pass<shards_source>;
extern template lane_starts find_lane_starts(const shards_source&, const lane_starts_options&);
extern template owner<read_stage> replayed_run::read(const shards_source&, shard_read_stage_options,
                                                     sample_sink<record>&);

}}}   // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/shards.inl>
#endif
