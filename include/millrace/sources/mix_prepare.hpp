// Holds the maps after each source of a mix as one callable: each item goes through the maps of its own source.
//
//   using maps_of_a = std::tuple<map_stage<F>>;  using maps_of_b = std::tuple<map_stage<G>, map_stage<H>>;
//   mix_prepare<example, maps_of_a, maps_of_b> prepare{{a, b}};
//   example e = prepare(std::move(record), random, memory);          // record.number() selects the maps
//
// A mixed item (mixed_record, mixed_item) gives the number of its source with number(), and the plain item of that
// source with alone<Source>(). All maps of a source take their random numbers from the same rng, one after the other.
// Errors: exceptions of the maps pass through. Threads: any number.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/stages/map.hpp>

#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
    return run<0>(std::get<Source>(sources), std::move(item).template alone<Source>(), random, memory);
  }

  template <std::size_t Map, class Maps, class In>
  static Item run(const Maps& maps, In item, rng& random, scratch& memory) {
    if constexpr (Map == std::tuple_size_v<Maps>) return item;
    else
      return run<Map + 1>(
          maps, detail::call_with_context(std::get<Map>(maps).callable, std::move(item), random, memory), random,
          memory);
  }
};

}}}  // namespace millrace::detail
