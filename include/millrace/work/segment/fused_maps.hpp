// Fuses consecutive map stages into one inlined function. One thread runs the complete function for a sample.
//
//   auto first = mr::map(decode);
//   auto second = mr::map(crop);
//   mr::detail::fused_maps<mr::record, decltype(first), decltype(second)> prepare({.seed = 7}, {first, second});
//   example e = prepare(std::move(r), {.epoch = 3, .sample = id}, memory, map_at_work);   // map_at_work: for errors
//
// Each map that draws random numbers gets its own rng (random stream). The rng depends on seed, epoch and sample, and
// on the number of the map among the stages that draw random numbers.
// Errors: throws the exceptions of the maps. Threads: any number of threads may call the function concurrently, each
// with a separate scratch.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/flow/stage_list.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/stages/map.hpp>

#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The position of the fused maps in the flow.
struct map_entry {
  std::uint64_t seed = 0;
  std::size_t first_map = 0;            ///< number of maps before these maps
  std::size_t first_random_stage = 0;   ///< number of earlier stages that draw random numbers
};

/// Passes an item of type `In` through each of `Maps`.
template <class In, class... Maps>
class fused_maps;

/// The case without maps. Returns the input.
template <class In>
class fused_maps<In> {
 public:
  using input = In;
  using output = In;
  static constexpr std::size_t draws = 0, maps = 0;

  fused_maps() = default;
  fused_maps(map_entry, stage_list<>) {}
  /// Returns the item.
  In operator()(In item, const rng::key&, scratch&, std::size_t&) const { return item; }
};

/// The case with at least one map. Calls `First`, then the other maps.
template <class In, class First, class... Rest>
class fused_maps<In, First, Rest...> {
  using middle = typename First::template out<In>;
  using rest_maps = fused_maps<middle, Rest...>;
  static constexpr bool first_draws = First::template draws<In>;

 public:
  using input = In;
  using output = typename rest_maps::output;
  static constexpr std::size_t maps = 1 + rest_maps::maps;
  static constexpr std::size_t draws = (first_draws ? 1 : 0) + rest_maps::draws;

  fused_maps(map_entry at, stage_list<First, Rest...> stages)
      : at_(at),
        first_(std::move(stages.first)),
        rest_({at.seed, at.first_map + 1, at.first_random_stage + (first_draws ? 1 : 0)}, std::move(stages.rest)) {}

  /// Returns the item after all maps. Sets `map_at_work` to the number of the running map, counted from 1 in the
  /// complete flow.
  output operator()(In item, const rng::key& key, scratch& memory, std::size_t& map_at_work) const {
    map_at_work = at_.first_map + 1;
    rng random({.seed = at_.seed, .epoch = key.epoch, .sample = key.sample, .stage = at_.first_random_stage});
    return rest_(call_with_context(first_.callable, std::move(item), random, memory), key, memory, map_at_work);
  }

 private:
  map_entry at_;
  First first_;
  rest_maps rest_;
};

/// Returns the name of a map for messages, such as "map 2". Returns "source" for 0.
inline std::string map_name(std::size_t map_at_work) {
  return map_at_work == 0 ? std::string("source") : "map " + std::to_string(map_at_work);
}

}}}   // namespace millrace::detail
