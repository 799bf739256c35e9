// Definitions for shards.hpp.
#pragma once

#include <millrace/sources/shards.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/io/tar/read/declared_samples.hpp>
#include <millrace/read/run/indexed_run.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// The indexes of the shards. The first session that uses them reads or builds them.
struct shards_source::indexes {
  const millrace::index use;
  const bool chooses;   // whether samples are chosen by key, which requires the indexes
  const name_list names;
  const shard_data_options options;
  const bool limits_damage;                // whether damaged_shards_at_most is set
  std::mutex mutex{};                      // guards the rest
  std::shared_ptr<shard_data> data[2]{};   // [1] is for sessions with on_damage
  std::string why_streamed{};
  MILLRACE_RARE ~indexes() = default;
};

MILLRACE_RARE shards_source::shards_source(const name_list& names, const shards_options& o)
    : files_(o.index == millrace::index::off ? file_list(names, o.storage) : file_list::deferred(names, o.storage)),
      reader_options_{.fields = o.fields, .having = o.having, .limits = o.limits, .strict = o.strict},
      without_marker_(make_shared_object<std::vector<std::atomic<bool>>>(files_.size())),
      pool_(make_shared_object<block_pool>()),
      reads_(make_shared_object<read_meter>()),
      indexes_(new indexes{.use = o.index,
                           .chooses = o.only || !o.without.empty() || o.where || o.repeats,
                           .names = names,
                           .options = {.reader = {.fields = o.fields, .limits = o.limits, .sidecars = o.storage},
                                       .files = {.cache_folder = o.index_folder, .storage = o.storage},
                                       .set_index = o.set_index,
                                       .notice = o.notice,
                                       .strict = o.strict,
                                       .choice = {.only = o.only,
                                                  .without = o.without,
                                                  .where = o.where,
                                                  .repeats = o.repeats,
                                                  .having = o.having},
                                       .damaged_shards_at_most = o.damaged_shards_at_most.value_or(0),
                                       .entries = o.entries},
                           .limits_damage = o.damaged_shards_at_most.has_value()}) {
  if (indexes_->chooses && o.index == millrace::index::off)
    throw setup_error("the options .only, .without, .where and .repeats of shards() need an index: got .index "
                      "= mr::index::off, expected automatic or required",
                      "Omit .index. To select samples without an index, use .having or filter()");
}

MILLRACE_RARE bool shards_source::uses_index(const index_use& use) const {
  indexes& own = *indexes_;
  if (own.use == millrace::index::off) return false;
  const bool required = needs_index();
  if (!use.one_row_per_sample) {
    if (!required) return false;
    throw setup_error(std::string("shards() with ") +
                          (own.chooses ? ".only, .without, .where or .repeats" : "an index") +
                          " needs one row for each sample, but the flow contains expand, filter, take, pack, bucket, "
                          "or a shuffle that is not directly after the source",
                      own.chooses ? "Replace these options by .having or filter(), or remove that stage"
                                  : "Choose samples by .having, .where or .only instead of filter(). Otherwise, stream "
                                    "the shards: .index = mr::index::off");
  }
  const std::lock_guard lock(own.mutex);
  std::shared_ptr<shard_data>& data = own.data[use.tolerates_damage];
  if (data || !own.why_streamed.empty()) return data != nullptr;
  shard_data_options options = own.options;
  if (use.tolerates_damage && !own.limits_damage) options.damaged_shards_at_most = own.names.size();
  try {
    data = make_shared_object<shard_data>(own.names, std::move(options), own.options.notice ? nullptr : &use.notices);
  } catch (const compressed_shard& e) {
    if (required) throw;
    own.why_streamed = e.message();
  }
  return data != nullptr;
}

MILLRACE_RARE bool shards_source::needs_index() const noexcept {
  return indexes_->use == millrace::index::required || indexes_->chooses;
}

MILLRACE_RARE bool shards_source::calls_functions() const noexcept {
  const shard_data_options& o = indexes_->options;
  return o.notice || o.choice.where || o.choice.repeats;
}

MILLRACE_RARE std::string shards_source::why_streamed() const {
  const std::lock_guard lock(indexes_->mutex);
  return indexes_->why_streamed;
}

MILLRACE_RARE std::shared_ptr<shard_data> shards_source::data(bool tolerates_damage) const {
  const std::lock_guard lock(indexes_->mutex);
  return indexes_->data[tolerates_damage];
}

MILLRACE_RARE owner<planned_run> shards_source::plan(const indexed_run_options& o) const {
  return make_owner<indexed_run<shard_data>>(data(o.tolerates_damage), o);
}

MILLRACE_RARE owner<read_stage> shards_source::read_by_index(planned_run& run, shard_read_stage_options o,
                                                             sample_sink<record>& first) const {
  return static_cast<indexed_run<shard_data>&>(run).read(*this, std::move(o), first);
}

MILLRACE_RARE shard_reader shards_source::open(std::size_t shard, std::uint64_t) const {
  return open_shard_at({.sidecars = files_.at(), .warned_missing_marker = &(*without_marker_)[shard]},
                       files_.open(shard, *reads_), *pool_, reader_options_);
}

MILLRACE_RARE std::uint64_t shards_source::stated_samples(std::size_t shard) const {
  // The sidecar file counts all samples, including those without these fields.
  if (!reader_options_.having.empty()) return 0;
  const std::uint64_t samples = declared_samples(files_.name(shard), files_.at()).samples;
  return samples > max_stated_samples ? 0 : samples;
}

MILLRACE_RARE std::optional<other_piece> shards_source::other_piece_of(const error_location& sample) const {
  constexpr std::uint64_t max_bytes = std::uint64_t{4} << 30, max_remote_bytes = std::uint64_t{256} << 20;
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (files_.name(i) == sample.shard)
      return find_other_piece_of_sample(open_file(files_.at(), sample.shard), sample.key, sample.offset_bytes,
                                        files_.at().is_local() ? max_bytes : max_remote_bytes);
  return std::nullopt;
}

MILLRACE_RARE shards_source shards_source::watched_in(std::shared_ptr<read_meter> meter) const {
  shards_source same = *this;
  same.reads_ = std::move(meter);
  return same;
}

}   // namespace detail

#ifdef MILLRACE_COMPILED
namespace detail {

template class ticket_input<record>;
template class jitter_order<record>;
template class reorder_buffer<shards_source>;
template class read_stage_base<shards_source>;
template class shard_read_stage<shards_source>;
template class interleaved_read_stage<shards_source>;
template class lane_shard_counts<shards_source>;
template class counted_lane_pass<shards_source>;
template lane_starts find_lane_starts(const shards_source&, const lane_starts_options&);
template owner<read_stage> replayed_run::read(const shards_source&, shard_read_stage_options, sample_sink<record>&);

}   // namespace detail
#endif

}}   // namespace millrace
