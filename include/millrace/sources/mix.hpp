// mix: combines several sources by weight, in one exact order. millrace.hpp does not include this header.
//
//   #include <millrace/mix.hpp>
//   auto flow = mr::mix({.seed = 7, .on_exhausted = mr::exhausted::repeat},
//                       mr::weighted{mr::shards("photos-{000..146}.tar") | mr::shuffle({.window = 8192}), 0.7},
//                       mr::weighted{mr::shards("drawings-{00..11}.tar") | mr::shuffle({.window = 2048}), 0.3})
//             | mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 256});
//
// Sources: mix(options, vector of weighted) mixes any number of sources of one type, such as one source for each file
// of a long list. One shuffle may follow each source, and maps may follow the shuffle. The items of all sources must
// have the same type after their maps. If all sources are shards() without maps, this type is mixed_record, a record
// with the number of its source.
//
// Weights: a weight is a number, or a function of the position in the run (flow/source_weight.hpp), for example for a
// curriculum: weighted{web, source_weight::linear({{0, 0.9}, {1'000'000, 0.1}})}. A weight that is a function requires
// exhausted::repeat. If all weights are numbers, every interval of positions contains the sources in proportion to
// their weights. order/mix_pattern.hpp and order/mix_schedule.hpp describe the details. order/mix_plan.hpp describes
// the end of a source and of an epoch. Ranks and resume points work as for shards() with an index. stats().sources
// counts the samples delivered from each source. session::locate() names the source of a sample.
//
// Inner mixes: a source may itself be a mix of shards. The outer mix includes each source of this inner mix separately.
// The weight of such a source is its share of the inner mix, multiplied by the weight of the inner mix. Both mixes need
// the same on_exhausted. If a shuffle follows an inner mix, all sources of the outer mix are streamed.
//
// Streams: if one source is not shards(), or has shards without an index, all sources are streamed. The run must then
// have only one process (read/mix/mix_streams.hpp). stats().sources and session::locate() are not available. The end of
// an epoch is unknown until it is reached.
// Errors: the errors of the sources; setup_error if a constant weight is not above 0, or if a source has no samples.
// setup_error for a resume point of a run with other sources, weights, windows, seeds or on_exhausted.
// Threads: as for shards().
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/measure/values/run_stats.hpp>
#include <millrace/sources/mixed_shards.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

// Combines the maps of all sources of a mix into one callable. Each item passes through the maps of its source.
//
// For a mixed item (mixed_record, mixed_item), number() returns the number of its source, and alone<Source>() returns
// the item without the number. The maps of a source use the same rng, one after the other. Errors: exceptions of the
// maps. Threads: any number of threads at the same time.

/// Applies the maps of an item's source.
template <class Item, class... MapsOfSources>
struct mix_prepare {
  std::tuple<MapsOfSources...> sources;

  template <class Mixed>
  Item operator()(Mixed item, rng& random, scratch& memory) const {
    return of_source<0>(std::move(item), random, memory);
  }

 private:
  template <std::size_t Source, class Mixed>
  Item of_source(Mixed&& item, rng& random, scratch& memory) const {
    if constexpr (Source + 1 < sizeof...(MapsOfSources))
      if (item.number() != Source) return of_source<Source + 1>(std::move(item), random, memory);
    return run_maps<Item>(std::get<Source>(sources), std::move(item).template alone<Source>(), random, memory);
  }
};

/// Applies the maps of an item's source. The maps of all sources have the same types.
template <class Item, class Maps>
struct mix_list_prepare {
  std::vector<Maps> sources;

  template <class Mixed>
  Item operator()(Mixed item, rng& random, scratch& memory) const {
    const Maps& maps = sources[item.number()];
    return run_maps<Item>(maps, std::move(item).template alone<0>(), random, memory);
  }
};

}   // namespace detail

/// Options of mix().
struct mix_options {
  std::uint64_t seed = 0;   ///< seed of all random numbers and orders; it is combined with the seed of each source
  /// Behavior when a source runs out, that is, when all samples of its pass are delivered. `stop` ends the epoch,
  /// `repeat` begins the next pass of the source, and `reweight` continues with the other sources.
  exhausted on_exhausted = exhausted::stop;
};

/// One source of a mix, and its weight.
template <class Flow>
struct weighted {
  Flow flow;
  source_weight weight = 1;   ///< relative to the weights of the other sources; above 0 if it is a number
  std::string name{};         ///< name in messages and statistics; by default "source 0", "source 1", ...
};
template <class Flow>
weighted(Flow, source_weight = 1, std::string = {}) -> weighted<Flow>;

namespace detail {

/// Recognizes flows that can be mixed: a source that can be streamed, an optional shuffle, and any number of maps.
template <class Flow>
struct mixable_source {
  static constexpr bool good = false;
};
template <class Item, class Source, class... Maps>
struct mixable_source<flow<Item, Source, map_stage<Maps>...>> {
  static constexpr bool good = !requires { typename Source::planned; } || requires { requires Source::also_streams; };
  static constexpr std::size_t maps = sizeof...(Maps);
};
template <class Item, class Source, class... Maps>
struct mixable_source<flow<Item, Source, shuffle_stage, map_stage<Maps>...>>
    : mixable_source<flow<Item, Source, map_stage<Maps>...>> {};

/// True if each flow is shards or a mix of shards, and no flow has maps. The items are then records.
template <class... Flows>
constexpr bool mixes_records = (mix_part<Flows>::good && ...) && (mixable_source<Flows>::maps + ...) == 0;

/// True if each flow is shards or a mix of shards, and at least one is a mix.
template <class... Flows>
constexpr bool contains_mixes = (mix_part<Flows>::good && ...) && (mix_part<Flows>::is_mix || ...);

enum class mix_mistake { none, reported, not_mixable, items_differ };

template <class First, class... Rest>
constexpr mix_mistake mistake_of_mix() {
  if constexpr ((is_broken_flow<First> || ... || is_broken_flow<Rest>)) return mix_mistake::reported;
  else if constexpr (!(mixable_source<First>::good && ... && mixable_source<Rest>::good))
    return mix_mistake::not_mixable;
  else if constexpr ((std::is_same_v<typename First::item, typename Rest::item> && ...) ||
                     mixes_records<First, Rest...>)
    return mix_mistake::none;
  else return mix_mistake::items_differ;
}
template <mix_mistake Mistake, class... Flows>
concept mixed_with = sizeof...(Flows) > 0 && mistake_of_mix<Flows...>() == Mistake;

template <class... Maps>
stage_list<map_stage<Maps>...> maps_of(stage_list<shuffle_stage, map_stage<Maps>...> stages) {
  return std::move(stages.rest);
}
template <class... Maps>
stage_list<map_stage<Maps>...> maps_of(stage_list<map_stage<Maps>...> stages) {
  return stages;
}

/// Merges the thread options of the maps. If one map is blocking, all maps run on the threads for blocking maps.
template <class... Maps>
void add_options(const stage_list<Maps...>& maps, map_options& o) {
  for_each(maps, [&](const auto& map) {
    if (!map.options.blocking) return;
    o.threads = std::max(o.blocking ? o.threads : 1, map.options.threads);
    o.blocking = true;
  });
}

/// Returns a flow that consists of the source and one map stage. The map stage applies to each item the maps of the
/// item's source.
template <class Source, class First, class... Rest>
auto mixed_flow(Source source, std::uint64_t seed, First& first, Rest&... rest) {
  using item = typename First::item;
  using prepare =
      mix_prepare<item, decltype(maps_of(std::move(first.stages))), decltype(maps_of(std::move(rest.stages)))...>;
  prepare maps{{maps_of(std::move(first.stages)), maps_of(std::move(rest.stages))...}};
  map_options of_maps;
  std::apply([&](const auto&... m) { (add_options(m, of_maps), ...); }, maps.sources);
  return flow<item, Source, map_stage<prepare>>{
      {}, std::move(source), seed, {map_stage<prepare>{{}, std::move(maps), of_maps}}};
}

/// Returns the flow of a mix with inner mixes. `parts` contains the maps of each argument, and `of_maps` their merged
/// options.
template <class Item, class Parts>
auto nested_mix_flow(mixed_shard_leaves leaves, std::uint64_t seed, Parts parts, const map_options& of_maps) {
  using source_type = mixed_shards<mix_stream_list<shards_source>>;
  using prepare = nested_mix_prepare<Item, Parts>;
  source_type source(leaves.rule, seed, leaves.sources);
  return flow<Item, source_type, map_stage<prepare>>{
      {}, std::move(source), seed, {map_stage<prepare>{{}, {std::move(parts), std::move(leaves.first)}, of_maps}}};
}
/// Returns the flow of a mix with inner mixes, if no argument has maps.
inline auto nested_mix_flow(const mixed_shard_leaves& leaves, std::uint64_t seed) {
  using source_type = mixed_shards<mix_stream_list<shards_source>>;
  return flow<mixed_record, source_type>{{}, source_type(leaves.rule, seed, leaves.sources), seed};
}

/// Returns the maps of one argument. Merges their options into `o`.
template <class Flow>
auto mix_source_maps_of(Flow& part, map_options& o) {
  auto maps = maps_of(std::move(part.stages));
  add_options(maps, o);
  return mix_part_maps<decltype(maps), mix_part<Flow>::is_mix>{std::move(maps)};
}

}   // namespace detail

/// Returns a flow that mixes the sources by weight. The order of the arguments determines the source numbers, also in
/// resume points. Throws setup_error if a constant weight is not above 0, or if a source has no samples.
template <class... Flows>
  requires detail::mixed_with<detail::mix_mistake::none, Flows...> && (!detail::contains_mixes<Flows...>)
auto mix(const mix_options& options, weighted<Flows>... of) {
  detail::mix_rule rule{.on_exhausted = options.on_exhausted};
  (rule.sources.push_back({.weight = std::move(of.weight),
                           .seed = of.flow.seed,
                           .window = detail::window_of(of.flow.stages),
                           .name = std::move(of.name)}),
   ...);
  constexpr bool only_shards = (std::is_same_v<typename Flows::source_type, detail::shards_source> && ...);
  using streams = detail::stream_tuple<typename Flows::source_type...>;
  using source_type = std::conditional_t<only_shards, detail::mixed_shards<streams>, detail::mix_streams<streams>>;
  if constexpr (!only_shards) (detail::check_mix_streams(of.flow.source), ...);
  source_type source(std::move(rule), options.seed, of.flow.source...);
  if constexpr ((detail::mixable_source<Flows>::maps + ...) == 0 &&
                std::is_same_v<typename source_type::item, detail::mixed_record>)
    return detail::flow<detail::mixed_record, source_type>{{}, std::move(source), options.seed};
  else return detail::mixed_flow(std::move(source), options.seed, of.flow...);
}

/// Returns a flow that mixes any number of sources of one type, for example a list that is read at run time. The order
/// of the vector determines the source numbers. Throws setup_error if a constant weight is not above 0, or if a source
/// has no samples. Throws setup_error if more than 256 sources are streamed. Up to 512 files stay open between reads.
template <class Flow>
  requires detail::mixed_with<detail::mix_mistake::none, Flow> && (!detail::contains_mixes<Flow>)
auto mix(const mix_options& options, std::vector<weighted<Flow>> of) {
  using original = typename Flow::source_type;
  using streams = detail::mix_stream_list<original>;
  constexpr bool only_shards = std::is_same_v<original, detail::shards_source>;
  using source_type = std::conditional_t<only_shards, detail::mixed_shards<streams>, detail::mix_streams<streams>>;
  using maps = decltype(detail::maps_of(std::move(of.front().flow.stages)));
  using prepare = detail::mix_list_prepare<typename Flow::item, maps>;
  detail::mix_rule rule{.on_exhausted = options.on_exhausted};
  std::vector<original> sources;
  prepare all;
  map_options of_maps;
  for (weighted<Flow>& one : of) {
    rule.sources.push_back({.weight = std::move(one.weight),
                            .seed = one.flow.seed,
                            .window = detail::window_of(one.flow.stages),
                            .name = std::move(one.name)});
    if constexpr (!only_shards) detail::check_mix_streams(one.flow.source);
    sources.push_back(std::move(one.flow.source));
    all.sources.push_back(detail::maps_of(std::move(one.flow.stages)));
    detail::add_options(all.sources.back(), of_maps);
  }
  source_type source(std::move(rule), options.seed, sources);
  if constexpr (maps::size == 0 && std::is_same_v<typename source_type::item, detail::mixed_record>)
    return detail::flow<detail::mixed_record, source_type>{{}, std::move(source), options.seed};
  else
    return detail::flow<typename Flow::item, source_type, detail::map_stage<prepare>>{
        {}, std::move(source), options.seed, {detail::map_stage<prepare>{{}, std::move(all), of_maps}}};
}

/// Returns the flow of a mix with inner mixes. In the list of sources, each inner mix is replaced by its sources.
template <class... Flows>
  requires detail::mixed_with<detail::mix_mistake::none, Flows...> && detail::contains_mixes<Flows...>
auto mix(const mix_options& options, weighted<Flows>... of) {
  detail::mixed_shard_leaves leaves(options.on_exhausted);
  (leaves.add(of), ...);
  map_options of_maps;
  if constexpr ((detail::mixable_source<Flows>::maps + ...) == 0) return detail::nested_mix_flow(leaves, options.seed);
  else
    return detail::nested_mix_flow<typename std::tuple_element_t<0, std::tuple<Flows...>>::item>(
        std::move(leaves), options.seed, std::tuple{detail::mix_source_maps_of(of.flow, of_maps)...}, of_maps);
}

/// Returns the flow of a mix of mixes. In the list of sources, each inner mix is replaced by its sources.
template <class Flow>
  requires detail::mixed_with<detail::mix_mistake::none, Flow> && detail::contains_mixes<Flow>
auto mix(const mix_options& options, std::vector<weighted<Flow>> of) {
  detail::mixed_shard_leaves leaves(options.on_exhausted);
  for (const weighted<Flow>& one : of) leaves.add(one);
  map_options of_maps;
  if constexpr (detail::mixable_source<Flow>::maps == 0) return detail::nested_mix_flow(leaves, options.seed);
  else {
    std::vector<decltype(detail::mix_source_maps_of(of.front().flow, of_maps))> parts;
    for (weighted<Flow>& one : of) parts.push_back(detail::mix_source_maps_of(one.flow, of_maps));
    return detail::nested_mix_flow<typename Flow::item>(std::move(leaves), options.seed, std::move(parts), of_maps);
  }
}

// The overloads below report errors at compile time.

// clang-format off
/// Reports a vector whose sources have stages other than a shuffle and maps, or contain a join().
template <class Flow>
  requires detail::mixed_with<detail::mix_mistake::not_mixable, Flow>
__attribute__((unavailable("millrace: a source of mix() may have only a shuffle, followed by maps, and must not be a "
                           "join(). Put other stages after mix().")))
detail::broken_flow mix(const mix_options&, const std::vector<weighted<Flow>>&) {
  return {};
}
// clang-format on

/// Avoids a second error for a vector of flows whose mistake was already reported.
template <class Flow>
  requires detail::mixed_with<detail::mix_mistake::reported, Flow>
detail::broken_flow mix(const mix_options&, const std::vector<weighted<Flow>>&) {
  return {};
}

/// Avoids a second error if the mistake of a flow was already reported.
template <class... Flows>
  requires detail::mixed_with<detail::mix_mistake::reported, Flows...>
detail::broken_flow mix(const mix_options&, weighted<Flows>...) {
  return {};
}

// clang-format off
/// Reports a source with stages other than a shuffle and maps.
template <class... Flows>
  requires detail::mixed_with<detail::mix_mistake::not_mixable, Flows...>
__attribute__((unavailable("millrace: a source of mix() may have only a shuffle, followed by maps, and must not be a "
                           "join(). Put other stages after mix().")))
detail::broken_flow mix(const mix_options&, weighted<Flows>...) {
  return {};
}

/// Reports sources whose items have different types.
template <class... Flows>
  requires detail::mixed_with<detail::mix_mistake::items_differ, Flows...>
__attribute__((unavailable("millrace: the sources of mix() end in items of different types. End each source in a map() "
                           "that returns the same type.")))
detail::broken_flow mix(const mix_options&, weighted<Flows>...) {
  return {};
}

/// Reports a source without a weight.
template <class... Things>
__attribute__((unavailable("millrace: mix() is given a source without its weight. Pass the options, then each source "
                           "as weighted{flow, weight}.")))
detail::broken_flow mix(const mix_options&, const Things&...) {
  return {};
}
// clang-format on

}}   // namespace millrace
