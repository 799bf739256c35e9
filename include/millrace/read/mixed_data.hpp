// Several indexed data sets as one, with the rule that mixes them: an indexed_run over a mix reads this.
//
//   mr::detail::mixed_data data({a, b}, {.sources = {{.weight = 0.7}, {.weight = 0.3}},
//                                        .on_exhausted = mr::exhausted::repeat});
//   data.read(wanted, records, failure);      // as shard_data; shard numbers continue from source to source
//   records[0].source;                        // number of the source that the record came from
//   data.fingerprint();                       // upper half: of the data sets; lower half: of the rule
//
// Errors: those of shard_data; setup_error for a resume point of other sources or of another rule. The message says
// which of the two differs. Threads: read() from any number at a time; everything else is immutable.
#pragma once

#include <millrace/io/index/shard_data.hpp>
#include <millrace/order/mix_cursor.hpp>
#include <millrace/order/mix_pattern.hpp>
#include <millrace/read/indexed_run_options.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A record of a mix.
struct mixed_record : record {
  std::size_t source = 0;   ///< number of its source in the mix, from 0

  /// Returns the number of its source in the mix, from 0.
  std::size_t number() const noexcept { return source; }
  /// Moves out the record.
  template <std::size_t Source>
  record alone() && noexcept {
    return std::move(*this);
  }
};

/// Reads several data sets as one; shard numbers continue from one source to the next.
class mixed_data {
 public:
  using item = mixed_record;

  /// Takes one data set for each source of the rule.
  mixed_data(std::vector<std::shared_ptr<shard_data>> sets, mix_rule rule)
      : sets_(std::move(sets)), rule_(std::move(rule)) {
    std::uint64_t of_data = sets_.size(), of_rule = static_cast<std::uint64_t>(rule_.on_exhausted);
    std::vector<double> weights;
    for (std::size_t i = 0; i < sets_.size(); ++i) {
      if (rule_.sources[i].name.empty()) rule_.sources[i].name = "source " + std::to_string(i);
      first_shards_.push_back(counts_.size());
      counts_.insert(counts_.end(), sets_[i]->counts().begin(), sets_[i]->counts().end());
      weights.push_back(rule_.sources[i].weight);
      of_data = combine_keys(of_data, sets_[i]->fingerprint());
      of_rule = combine_keys(combine_keys(of_rule, rule_.sources[i].seed), rule_.sources[i].window);
    }
    for (const std::uint64_t share : mix_pattern::shares_of(weights)) of_rule = combine_keys(of_rule, share);
    fingerprint_ = (of_data & upper_half) | (of_rule >> 32);
  }

  /// Returns the rule of the mix, with a name for each source.
  const mix_rule& rule() const noexcept { return rule_; }
  /// Adds the events of all sources to `counts`.
  void report(event_counts& counts) const noexcept {
    for (const auto& set : sets_) set->report(counts);
  }
  /// Returns the number of sources.
  std::size_t sources() const noexcept { return sets_.size(); }
  /// Returns the data set of source `i`.
  const shard_data& source(std::size_t i) const noexcept { return *sets_[i]; }
  /// Returns the samples of each shard, over the shards of all sources.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  /// Returns the bytes of all sources together.
  std::uint64_t size_bytes() const noexcept {
    std::uint64_t all = 0;
    for (const auto& set : sets_) all += set->size_bytes();
    return all;
  }
  /// Returns a hash of the data sets (upper half) and of the rule (lower half).
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Returns source, shard, key and offset of a sample.
  error_location location_of(const located_sample& s) const {
    const std::size_t source = source_of(s.shard);
    error_location found = sets_[source]->location_of({s.shard - first_shards_[source], s.index});
    found.stage = rule_.sources[source].name + " of the mix";
    return found;
  }

  /// Returns the notices of all sources (shard_data::notice()); empty if all is well.
  std::string notice() const {
    std::string all;
    for (const auto& set : sets_)
      if (const std::string one = set->notice(); !one.empty()) all += (all.empty() ? "" : " Also, ") + one;
    return all;
  }

  /// Returns the meter that watches the reads of all sources together.
  read_meter& reads() const noexcept { return reads_; }

  /// Compares the fingerprint `then` of a resume point with this data set.
  /// Throws setup_error if the sources or the rule of the mix differ.
  void check_same(std::uint64_t then) const {
    const std::uint64_t difference = then ^ fingerprint_;
    if (difference == 0) return;
    const char* const what = (difference & upper_half) == 0 ? "the mix was another: its weights, a source's seed or "
                                                              "shuffle window, or what happens when one runs out"
                                                            : "the mix was of other sources, or in another order";
    throw setup_error("the resume point belongs to another run: " + std::string(what),
                      "Make them equal, or start without it; ranks (of one global batch) and workers may change");
  }

  /// Reads wanted[i] into records[i]. Returns how many samples at the front of `wanted` are good.
  /// Sets `failure` to the error of the next one, if there is one.
  std::size_t read(std::span<const located_sample> wanted, std::span<mixed_record> records,
                   std::exception_ptr& failure) {
    std::size_t good = wanted.size();
    std::vector<located_sample> located;
    std::vector<std::size_t> rows;
    std::vector<record> found;
    for (std::size_t source = 0; source < sets_.size(); ++source) {
      located.clear();
      rows.clear();
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (source_of(wanted[i].shard) != source) continue;
        located.push_back({wanted[i].shard - first_shards_[source], wanted[i].index});
        rows.push_back(i);
      }
      found.assign(located.size(), {});
      std::exception_ptr wrong;
      const std::size_t read = sets_[source]->read(located, {.records = found, .failure = wrong, .reads = reads_});
      for (std::size_t i = 0; i < read; ++i) records[rows[i]] = {std::move(found[i]), source};
      if (read < rows.size() && rows[read] < good) {
        good = rows[read];
        failure = wrong;
      }
    }
    return good;
  }

 private:
  static constexpr std::uint64_t upper_half = ~std::uint64_t{0} << 32;

  std::size_t source_of(std::uint64_t shard) const noexcept {
    const auto after = std::upper_bound(first_shards_.begin(), first_shards_.end(), shard);
    return static_cast<std::size_t>(after - first_shards_.begin()) - 1;
  }

  std::vector<std::shared_ptr<shard_data>> sets_;
  mix_rule rule_;
  mutable read_meter reads_;
  std::vector<std::uint64_t> counts_, first_shards_;
  std::uint64_t fingerprint_ = 0;
};

/// Returns the order of a mix. The seed of a source is made of the mix's seed, its number and its own seed.
inline mix_plan plan_of(const mixed_data& data, const indexed_run_options& o) {
  mix_plan_options made{.on_exhausted = data.rule().on_exhausted,
                        .lanes = o.lanes,
                        .global_batch = o.global_batch(),
                        .drop_last = o.drop_last,
                        .epoch_batches = o.epoch_batches};
  for (std::size_t i = 0; i < data.sources(); ++i) {
    const mix_source_spec& s = data.rule().sources[i];
    made.sources.push_back({.weight = s.weight,
                            .seed = combine_keys(combine_keys(o.seed, i), s.seed),
                            .counts = data.source(i).counts(),
                            .window = s.window});
  }
  return mix_plan(std::move(made));
}

}}}  // namespace millrace::detail
