// The source of a mix of shards. Inner mixes are replaced by their sources.
//
//   mr::detail::mixed_shard_leaves leaves(mr::exhausted::repeat);
//   leaves.add(photos);                        // weighted{shards(...) | ..., 0.7}
//   leaves.add(drawings);                      // weighted{mix(..., shards...), 0.3}: adds each source of it
//   const mr::detail::mixed_shards<mr::detail::mix_stream_list<mr::detail::shards_source>> source(
//       leaves.rule, seed, leaves.sources);
//   leaves.first[1];                           // number of the first source of `drawings`
//
// If a source belongs to an inner mix, its weight is its share of the inner mix, multiplied by the weight of the inner
// mix. The inner mix must have the same on_exhausted as the outer mix. Errors: the errors of the sources; setup_error
// for an inner mix with another on_exhausted. Threads: as for shards().
#pragma once

#include <millrace/io/file/file_list.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/read/mix/mix_streams.hpp>
#include <millrace/read/mix/mixed_data.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Throws setup_error if an option of the source requires an index. Called if at least one source of the mix has no
/// index.
template <class Source>
void check_mix_streams(const Source& source) {
  if constexpr (requires { source.needs_index(); })
    if (source.needs_index())
      throw setup_error("the sources of the mix are streamed, because not all have an index, but shards() has an "
                        "option that needs an index: "
                        ".index = required, .only, .without, .where or .repeats",
                        "Mix only plain tar shards, or omit that option");
}

/// The source of a mix that consists only of shards(). The shards are streamed unless all of them have an index.
template <class Streams>
class mixed_shards : public mix_streams<Streams> {
 public:
  using planned = indexed_run<mixed_data>;
  static constexpr bool also_streams = true;

  /// `sources` are the sources of the mix, or a single vector of sources.
  template <class... Sources>
  mixed_shards(const mix_rule& rule, std::uint64_t seed, const Sources&... sources)
      : mix_streams<Streams>(rule, seed, sources...), rule_(rule) {
    (add(sources), ...);
  }

  /// Returns the weights and other properties of the sources.
  const mix_rule& rule() const noexcept { return rule_; }
  /// Returns the sources, in the order of rule().sources.
  const std::vector<shards_source>& sources() const noexcept { return sources_; }

  /// Returns whether a run uses the indexes of the sources: false if a source has no index. Throws the errors of the
  /// sources.
  bool uses_index(const index_use& use) const {
    std::atomic<std::size_t> first = sources_.size();   // the first source without an index or with an error
    std::vector<std::exception_ptr> errors(sources_.size());
    // If sources call functions of the user, these functions must run on this thread.
    const bool one_by_one = sources_.size() < concurrent_sources ||
                            std::any_of(
                                sources_.begin(), sources_.end(),
                                [](const shards_source& source) { return source.calls_functions(); });
    run_concurrently(sources_.size(), one_by_one ? 1 : 16, [&](std::size_t i) {
      if (i > first) return;
      try {
        if (sources_[i].uses_index(use)) return;
      } catch (...) {
        errors[i] = std::current_exception();
      }
      std::size_t now = first;
      while (i < now && !first.compare_exchange_weak(now, i)) {}
    });
    if (first == sources_.size()) return true;
    if (errors[first]) std::rethrow_exception(errors[first]);
    for (const shards_source& source : sources_) check_mix_streams(source);
    return false;
  }
  /// Returns the reason why the sources are streamed, or "" if there is nothing to report.
  std::string why_streamed() const {
    for (const shards_source& source : sources_)
      if (std::string why = source.why_streamed(); !why.empty()) return why;
    return {};
  }
  owner<planned_run> plan(const indexed_run_options& o) const {
    if (o.window > 0)
      throw setup_error("a shuffle after mix() would change the shares of the sources",
                        "Put shuffle after each source: weighted{shards(...) | shuffle({...}), 0.7}");
    std::vector<std::shared_ptr<shard_data>> sets;
    for (const shards_source& source : sources_) sets.push_back(source.data(o.tolerates_damage));
    return make_owner<planned>(std::make_shared<mixed_data>(std::move(sets), rule_), o);
  }

 private:
  static constexpr std::size_t concurrent_sources = 8;

  void add(const shards_source& source) { sources_.push_back(source); }
  void add(const std::vector<shards_source>& sources) { sources_ = sources; }

  mix_rule rule_;
  std::vector<shards_source> sources_;
};

/// Applies all maps in `maps`, in order.
template <class Item, class Maps, class In>
Item run_maps(const Maps& maps, In item, rng& random, scratch& memory) {
  if constexpr (Maps::size == 0) return item;
  else
    return run_maps<Item>(maps.rest, call_with_context(maps.first.callable, std::move(item), random, memory), random,
                          memory);
}

/// Recognizes flows of shards(), and mixes of shards without a shuffle after the mix. An outer mix replaces such an
/// inner mix by the sources of this inner mix.
template <class Flow>
struct mix_part {
  static constexpr bool good = false, is_mix = false;
};
template <class Item, class... Stages>
struct mix_part<flow<Item, shards_source, Stages...>> {
  static constexpr bool good = true, is_mix = false;
};
template <class Item, class Streams, class... Maps>
struct mix_part<flow<Item, mixed_shards<Streams>, map_stage<Maps>...>> {
  static constexpr bool good = true, is_mix = true;
};

template <class... Stages>
std::size_t window_of(const stage_list<shuffle_stage, Stages...>& stages) {
  return std::max<std::size_t>(1, stages.first.options.window);
}
template <class... Maps>
std::size_t window_of(const stage_list<map_stage<Maps>...>&) {
  return 0;
}

/// All sources of a mix in the order of their numbers. Inner mixes are replaced by their sources.
struct mixed_shard_leaves {
  explicit mixed_shard_leaves(exhausted on_exhausted) { rule.on_exhausted = on_exhausted; }

  /// Adds one argument of mix(), a `weighted` flow. If the flow is a mix, adds the sources of this mix instead.
  template <class Weighted>
  void add(const Weighted& part) {
    first.push_back(sources.size());
    if constexpr (mix_part<std::remove_cvref_t<decltype(part.flow)>>::is_mix) {
      const mix_rule& inner = part.flow.source.rule();
      if (inner.on_exhausted != rule.on_exhausted)
        throw setup_error("mix_options::on_exhausted differs between an outer mix and its inner mix",
                          "Set the same value for both mixes, because it applies to all their sources together");
      std::vector<source_weight> weights;
      for (const mix_source_spec& s : inner.sources) weights.push_back(s.weight);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        mix_source_spec s = inner.sources[i];
        s.weight = weight_within(part.weight, weights, i);
        if (part.flow.seed != 0) s.seed = combine_keys(part.flow.seed, s.seed);
        if (!part.name.empty()) s.name = part.name + (s.name.empty() ? " " + std::to_string(i) : "/" + s.name);
        rule.sources.push_back(std::move(s));
      }
      const auto& own = part.flow.source.sources();
      sources.insert(sources.end(), own.begin(), own.end());
    } else {
      rule.sources.push_back(
          {.weight = part.weight, .seed = part.flow.seed, .window = window_of(part.flow.stages), .name = part.name});
      sources.push_back(part.flow.source);
    }
  }

  mix_rule rule{};
  std::vector<shards_source> sources{};
  std::vector<std::size_t> first{};   ///< for each argument of mix(), the number of its first source
};

/// The maps of one argument of mix(). If `IsMix` is true, the argument is a mix, and the maps receive a mixed_record
/// with the number of the source within this mix.
template <class Maps, bool IsMix>
struct mix_part_maps {
  Maps maps;

  template <class Item>
  Item run(mixed_record&& item, rng& random, scratch& memory) const {
    if constexpr (IsMix) return run_maps<Item>(maps, std::move(item), random, memory);
    else return run_maps<Item>(maps, std::move(item).template alone<0>(), random, memory);
  }
};

/// Applies to each item the maps of the mix() argument that contains the item's source. `Parts` is a tuple or a vector
/// of mix_part_maps.
template <class Item, class Parts>
struct nested_mix_prepare {
  Parts parts;
  std::vector<std::size_t> first;   // for each argument, the number of its first source

  Item operator()(mixed_record item, rng& random, scratch& memory) const {
    const auto after = std::upper_bound(first.begin(), first.end(), item.source);
    const auto part = static_cast<std::size_t>(after - first.begin()) - 1;
    item.source -= first[part];
    if constexpr (requires { parts[part]; }) return parts[part].template run<Item>(std::move(item), random, memory);
    else return of_part<0>(part, std::move(item), random, memory);
  }

 private:
  template <std::size_t Part>
  Item of_part(std::size_t part, mixed_record&& item, rng& random, scratch& memory) const {
    if constexpr (Part + 1 < std::tuple_size_v<Parts>)
      if (part != Part) return of_part<Part + 1>(part, std::move(item), random, memory);
    return std::get<Part>(parts).template run<Item>(std::move(item), random, memory);
  }
};

}}}   // namespace millrace::detail
