// Combines the indexed data sets of a mix (several sources by weight) into one data set, which an indexed_run reads.
//
//   mr::detail::mixed_data data({a, b}, {.sources = {{.weight = 0.7}, {.weight = 0.3}},
//                                        .on_exhausted = mr::exhausted::repeat});
//   data.read(samples, records, failure);      // works like shard_data::read()
//   records[0].source;                        // number of the record's source
//   data.fingerprint();                       // upper half: hash of the data sets; lower half: hash of the rule
//
// The shards of all sources are numbered in one sequence, source after source.
// Errors: the errors of shard_data. setup_error if the sources or the settings of the mix differ from those of the
// resume point. Threads: any number of threads may call read() at the same time. All other functions are const, and any
// thread may call them.
#pragma once

#include <millrace/io/index/set/shard_sets.hpp>
#include <millrace/item/position.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/order/mix_plan.hpp>
#include <millrace/order/mix_pattern.hpp>
#include <millrace/read/mix/mixed_item.hpp>
#include <millrace/read/run/indexed_run.hpp>

#include <algorithm>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Reads several data sets together. Shard numbers continue from one source to the next.
class mixed_data : public shard_sets {
 public:
  using item = mixed_record;

  /// `sets` has one data set for each source of the rule.
  mixed_data(std::vector<std::shared_ptr<shard_data>> sets, mix_rule rule);

  /// Returns the rule of the mix. A source that the user did not name is named by its number, such as "source 0".
  const mix_rule& rule() const noexcept { return rule_; }
  /// Returns the number of sources.
  std::size_t sources() const noexcept { return sets_.size(); }
  /// Returns the data set of source `i`.
  const shard_data& source(std::size_t i) const noexcept { return *sets_[i]; }
  /// Returns the number of samples in each shard, for the shards of all sources.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the identity of a sample (see shard_data::id_of()).
  std::uint64_t id_of(const located_sample& s) const noexcept;
  /// Returns a text with the number of chosen samples of each source. Omits sources that use each of their samples
  /// once.
  std::string choice_text() const;
  /// Returns the size of all sources in bytes.
  std::uint64_t size_bytes() const noexcept;
  /// Returns a hash of the data sets in the upper half, and a hash of the rule in the lower half.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Returns source, shard, key and offset of a sample.
  error_location location_of(const located_sample& s) const;

  /// Throws setup_error if the fingerprint `then` of a resume point belongs to other sources or another rule.
  void check_same(std::uint64_t then) const;

  /// Reads samples[i] into records[i]. Returns the number of records before the first error. Stores this error in
  /// `failure`.
  std::size_t read(std::span<const located_sample> samples, std::span<mixed_record> records,
                   std::exception_ptr& failure);

  /// For each source, returns how many samples the rank `own` delivers between the positions `from` and `to`.
  std::vector<source_count> delivered(const mix_plan& order, const world& own, const position& from,
                                      const position& to) const;

  /// Returns a phrase that states the share of each source and the event that ends an epoch.
  std::string describe(const mix_plan& order) const;

 private:
  static constexpr std::uint64_t upper_half = ~std::uint64_t{0} << 32;

  std::size_t source_of(std::uint64_t shard) const noexcept { return source_of_shard_[shard]; }
  bool changes_weights() const noexcept {
    return std::any_of(rule_.sources.begin(), rule_.sources.end(),
                       [](const mix_source_spec& s) { return !s.weight.is_constant(); });
  }

  mix_rule rule_;
  std::vector<std::uint64_t> counts_, first_shards_;
  std::vector<std::uint32_t> source_of_shard_;
  bool chooses_ = false;   // whether a source uses a selection of its samples
  std::uint64_t fingerprint_ = 0;
};

/// Returns the order of a mix. Each source is shuffled with a seed that is derived from the seed of the mix, the
/// source's number and the source's seed.
mix_plan plan_of(const mixed_data& data, const indexed_run_options& o);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/mix/impl/mixed_data.inl>
#endif
