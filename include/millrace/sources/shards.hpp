// shards: WebDataset tar shards as the source of a flow.
//
//   auto train = mr::shards("train-{000..146}.tar", {.seed = 7});          // braces, "a.tar::b.tar", globs, folders
//   auto val = mr::shards("val/", {.fields = {"jpg;png", "cls"}});         // other fields are not read into memory
//   auto odd = mr::shards({"odd{name}.tar", "b.tar"});   // a list, or any range of names: each is taken literally
//
// Makes records (item/record.hpp), one per sample: consecutive members with the same key. Reads plain tar and gz, zst,
// bz2, xz and lz4, recognized by content. The call checks at once that all shards exist.
// Errors: setup_error for missing shards, which names the first ones. A damaged or truncated shard is an error that
// names shard, offset and last good key. The samples before the damage are delivered, never half a sample. A shard that
// ends between two members without an end marker counts as complete, unless a file beside it states more samples. Such
// shards are counted, and the first one is reported once.
// Threads: one I/O thread reads each shard, several shards at a time.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/io/file/file_list.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/item/record.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of shards().
struct shards_options {
  std::uint64_t seed = 0;                                    ///< seed of the shuffle and of all random numbers
  std::vector<std::string> fields{};                         ///< fields; "jpg;png": alternatives; empty: all fields
  /// Fields that a sample must have; others are left out. "jpg;png": one of them; {"jpg;png", "txt"}: both entries.
  required_fields having{};
  shard_limits limits{};   ///< what a shard may contain
  bool strict = false;   ///< makes a shard without an end marker an error; otherwise the first one is reported once
  millrace::storage storage{};   ///< where the shards are, and the files beside them
};

namespace detail {

/// The source that shards() makes: tar shards, read from start to end.
class shards_source {
 public:
  using item = record;
  static constexpr bool same_every_pass = true;

  shards_source(std::vector<std::string> names, const shards_options& options);

  std::size_t shards() const noexcept { return files_.size(); }
  const std::string& shard_name(std::size_t shard) const noexcept { return files_.name(shard); }
  std::uint64_t shard_bytes(std::size_t shard) const { return files_.size_bytes(shard); }
  std::int64_t shard_modified_ns(std::size_t shard) const { return files_.changed(shard); }
  /// Returns a digest of the choice of samples; 0 if all are used.
  std::uint64_t choice() const noexcept { return having().digest(); }
  /// Returns the fields that a sample must have.
  const required_fields& having() const noexcept { return reader_options_.having; }
  shard_reader open(std::size_t shard, std::uint64_t) const;
  /// Tells the storage that these shards will be opened in this order.
  void expect(std::span<const std::size_t> shards) const { files_.expect(shards); }
  /// Returns how many samples a file beside the shard tells that it has; 0 if none does.
  std::uint64_t samples_told(std::size_t shard) const;
  /// Reads the headers of a shard again. Returns where the rest of a sample is that is stored in pieces.
  std::optional<other_piece> other_piece_of(const error_location& sample) const;
  /// Returns the meter of all reads of this source. The I/O threads' remaining time is taken for unpacking.
  read_meter& reads() const noexcept { return *reads_; }
  /// Returns the same source, but with its reads recorded in `meter`, together with those of other sources.
  shards_source watched_in(std::shared_ptr<read_meter> meter) const;

 private:
  static constexpr std::uint64_t max_samples_told = std::uint64_t{1} << 24;   // a greater number is no count

  file_list files_;
  shard_reader_options reader_options_;
  std::shared_ptr<std::vector<std::atomic<bool>>> without_marker_;   // per shard: already reported
  std::shared_ptr<block_pool> pool_;
  std::shared_ptr<read_meter> reads_;
};

}  // namespace detail

/// Returns a flow of records. `names` is a pattern or a list, as for list_shards(). Throws setup_error if a shard is
/// missing.
template <detail::file_names Names = std::vector<std::string>>
auto shards(const Names& names, const shards_options& options = {}) {
  using source = detail::shards_source;
  const detail::shard_listing_options listing{.rule = detail::shards_of_a_folder, .at = options.storage};
  return detail::flow<record, source>{{}, source(detail::list_files(names, listing), options), options.seed};
}

/// Exists for its message: the compiler shows it for a second argument that is not options.
template <class Names, class Other>
  requires(!std::is_convertible_v<const Other&, shards_options>)
__attribute__((unavailable("millrace: the second argument of shards() is its options. Name the option, such as "
                           "shards(names, {.seed = 7}); several names are one list.")))
detail::broken_flow shards(const Names&, const Other&);

}}  // namespace millrace

#ifdef MILLRACE_COMPILED   // impl/shards.inl instantiates these
#include <millrace/read/run/replayed_run.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

extern template class ticket_input<record>;
extern template class jitter_order<record>;
extern template class reorder_buffer<shards_source>;
extern template class read_stage_base<shards_source>;
extern template class shard_read_stage<shards_source>;
extern template class interleaved_read_stage<shards_source>;
extern template class shard_counts<shards_source>;
extern template class counted_pass<shards_source>;
extern template lane_starts find_lane_starts(const shards_source&, const lane_starts_options&);
extern template std::unique_ptr<read_stage> replayed_run::read(const shards_source&, shard_read_stage_options,
                                                               sample_sink<record>&);

}}}  // namespace millrace::detail
#endif

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/shards.inl>
#endif
