// Definitions for mixed_data.hpp.
#pragma once

#include <millrace/read/mix/mixed_data.hpp>

#include <millrace/base/radix_sort.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE mixed_data::mixed_data(std::vector<std::shared_ptr<shard_data>> sets, mix_rule rule)
    : shard_sets(std::move(sets)), rule_(std::move(rule)) {
  std::uint64_t of_data = sets_.size(), of_rule = static_cast<std::uint64_t>(rule_.on_exhausted);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    if (rule_.sources[i].name.empty()) rule_.sources[i].name = "source " + std::to_string(i);
    first_shards_.push_back(counts_.size());
    counts_.insert(counts_.end(), sets_[i]->counts().begin(), sets_[i]->counts().end());
    source_of_shard_.resize(counts_.size(), static_cast<std::uint32_t>(i));
    chooses_ |= sets_[i]->chooses();
    of_data = combine_keys(of_data, sets_[i]->fingerprint());
    of_rule = combine_keys(combine_keys(of_rule, rule_.sources[i].seed), rule_.sources[i].window);
  }
  for (const std::uint64_t key : mix_schedule::weight_keys(rule_.sources)) of_rule = combine_keys(of_rule, key);
  fingerprint_ = (of_data & upper_half) | (of_rule >> 32);
}

MILLRACE_INLINE std::uint64_t mixed_data::id_of(const located_sample& s) const noexcept {
  if (!chooses_) return sample_id(s.shard, s.index);
  const std::size_t source = source_of(s.shard);
  return sets_[source]->id_of({s.shard - first_shards_[source], s.index}, first_shards_[source]);
}

MILLRACE_INLINE std::string mixed_data::choice_text() const {
  std::string all;
  for (std::size_t i = 0; i < sets_.size(); ++i)
    if (const std::string& one = sets_[i]->choice_text(); !one.empty())
      all += (all.empty() ? "" : ", ") + rule_.sources[i].name + ": " + one;
  return all;
}

MILLRACE_INLINE std::uint64_t mixed_data::size_bytes() const noexcept {
  std::uint64_t all = 0;
  for (const auto& set : sets_) all += set->size_bytes();
  return all;
}

MILLRACE_INLINE error_location mixed_data::location_of(const located_sample& s) const {
  const std::size_t source = source_of(s.shard);
  error_location location = sets_[source]->location_of({s.shard - first_shards_[source], s.index});
  location.stage = rule_.sources[source].name + " of the mix";
  return location;
}

MILLRACE_INLINE void mixed_data::check_same(std::uint64_t then) const {
  const std::uint64_t difference = then ^ fingerprint_;
  if (difference == 0) return;
  const char* const problem = (difference & upper_half) == 0
                                  ? "the mix has other settings (weights, a source's seed or shuffle window, or the "
                                    "behavior when a source runs out)"
                                  : "the mix has other sources, or the same sources in another order";
  throw setup_error("the resume point belongs to another run: " + std::string(problem),
                    "Use the same mix, or start without the resume point. If the global batch stays the "
                    "same, the numbers of workers and of ranks may change");
}

MILLRACE_INLINE std::size_t mixed_data::read(std::span<const located_sample> samples, std::span<mixed_record> records,
                                             std::exception_ptr& failure) {
  using target = shard_data::target;
  std::vector<target> all(samples.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {samples[i].shard << 32 | samples[i].index, i};
  radix_sort(all, [](const target& w) { return w.sample; });
  std::vector<record> loaded(samples.size());
  shard_data::read_request r{.records = loaded, .good = samples.size(), .failure = failure, .reads = reads_};
  const auto prefetch = [&](std::size_t i, auto what) {
    if (i >= all.size()) return;
    const std::size_t source = source_of(all[i].shard());
    what(*sets_[source], all[i].shard() - static_cast<std::size_t>(first_shards_[source]));
  };
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    const std::size_t source = source_of(all[first].shard());
    for (; end < all.size() && source_of(all[end].shard()) == source; ++end) {
      // With many sources, the objects of a source are in no cache. Each object points to the next one.
      prefetch(end + 9, [](const shard_data& set, std::size_t) { set.prefetch(); });
      prefetch(end + 6, [](const shard_data& set, std::size_t shard) { set.prefetch_shard(shard); });
      prefetch(end + 3, [](const shard_data& set, std::size_t shard) { set.prefetch_state(shard); });
      all[end].sample -= first_shards_[source] << 32;
    }
    sets_[source]->read(r, std::span(all).subspan(first, end - first));
  }
  for (std::size_t i = 0; i < loaded.size(); ++i)
    if (!loaded[i].empty()) records[i] = {std::move(loaded[i]), source_of(samples[i].shard)};
  return r.good;
}

MILLRACE_INLINE std::vector<source_count> mixed_data::delivered(const mix_plan& order, const world& own,
                                                                const position& from, const position& to) const {
  std::vector<source_count> all;
  for (const mix_source_spec& s : rule_.sources) all.push_back({s.name, 0});
  for (std::uint64_t epoch = from.epoch; epoch <= to.epoch; ++epoch) {
    const std::uint64_t begin = epoch == from.epoch ? from.next_position : 0;
    std::uint64_t end = to.next_position;
    if (order.cycles()) {   // positions of all epochs are one sequence
      end += (to.epoch - epoch) * order.positions();
    } else if (epoch < to.epoch) {
      end = order.positions();
    }
    const auto counts = order.counts_of(own, epoch, begin, end);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].samples += counts[i];
    if (order.cycles()) break;
  }
  return all;
}

MILLRACE_INLINE std::string mixed_data::describe(const mix_plan& order) const {
  std::string shares, ends = rule_.sources[order.measure()].name;
  for (const std::uint64_t share : order.shares()) shares += (shares.empty() ? " " : " : ") + std::to_string(share);
  const bool fixed_length = order.settings().epoch_batches != exact_order_options::exact_pass;
  switch (order.settings().on_exhausted) {
    case exhausted::stop: ends += " runs out first and ends the epoch"; break;
    case exhausted::reweight: ends = "the others continue when one runs out, " + ends + " last"; break;
    case exhausted::repeat:
      ends = "sources that run out restart" + (fixed_length ? "" : ", an epoch is a pass of " + ends);
  }
  return "mix" + shares + " of " + std::to_string(order.sources()) + " sources" +
         (changes_weights() ? ", with weights by position: " : ": ") + ends +
         (fixed_length ? "" : " (" + std::to_string(order.batches()) + " batches)");
}

MILLRACE_INLINE mix_plan plan_of(const mixed_data& data, const indexed_run_options& o) {
  const run_order_rule rule = run_order_rule_of(o);
  mix_plan_options result{.on_exhausted = data.rule().on_exhausted,
                          .lanes = rule.lanes,
                          .permutes = rule.permutes,
                          .global_batch = o.global_batch(),
                          .drop_last = o.drop_last,
                          .epoch_batches = o.epoch_batches};
  for (std::size_t i = 0; i < data.sources(); ++i) {
    const mix_source_spec& s = data.rule().sources[i];
    result.sources.push_back({.weight = s.weight,
                              .seed = combine_keys(combine_keys(o.seed, i), s.seed),
                              .counts = data.source(i).counts(),
                              .window = s.window});
  }
  return mix_plan(std::move(result));
}

}}}   // namespace millrace::detail
