// A source and the stages after it, as one type; and the '|' that joins them.
//
//   auto flow = mr::from(clips) | mr::map(prepare) | mr::batch<&window::pixels, &window::id>({.size = 16});
//   using item = decltype(flow)::item;      // what comes out at the end
//   auto run = mr::session{std::move(flow)};
//
// A flow is a value: it holds the source and the stages, does nothing, and is moved into the session that runs it.
// Errors: all at the '|', at compile time, one sentence each (flow/diagnose.hpp).
#pragma once

#include <millrace/flow/diagnose.hpp>

#include <tuple>

namespace millrace::inline MILLRACE_ABI {

/// The run of stages behind a source.
template <class Item, class Source, class... Stages>
struct flow : flow_tag {
  using item = Item;
  using source_type = Source;

  Source source;
  std::uint64_t seed = 0;   ///< of everything random in this flow
  std::tuple<Stages...> stages{};
};

/// What a stage says about itself to operator|. Each stage type has
///   template <class In> static constexpr bool fits;   whether it can follow a flow of In
///   template <class In> using out = ...;              what it makes of it
///   template <class In> static void explain();        names the diagnosis when it does not fit
namespace detail {

template <class Stage, class In>
concept stage_fits = Stage::template fits<In>;

/// Items after `batch` and the stages that take them are marked, so that only those may follow.
template <class Item>
concept ends_in_batch = requires {
  typename Item::batch_mark;
};
template <class Stage>
concept takes_batches = requires {
  typename Stage::batch_mark;
};
/// So are those after `bucket`, which batch alone takes.
template <class Item>
concept ends_in_bucket = requires {
  typename Item::bucket_mark;
};
template <class Item>
struct unwrapped_bucket {
  using type = Item;
};
template <ends_in_bucket Item>
struct unwrapped_bucket<Item> {
  using type = typename Item::item;
};
template <class Item>
using item_for_batch = typename unwrapped_bucket<Item>::type;
template <class Stage>
concept takes_buckets = requires {
  typename Stage::takes_buckets_mark;
};

}  // namespace detail

template <class Item, class Source, class... Stages, stage_like Stage>
constexpr auto operator|(flow<Item, Source, Stages...> before, Stage stage) {
  if constexpr (std::same_as<Stage, broken_stage>) {
    return broken_flow{};
  } else if constexpr (detail::ends_in_batch<Item> && !detail::takes_batches<Stage>) {
    diagnose::report<diagnose::after_batch<diagnose::in_stage<Stage>>>();
    return broken_flow{};
  } else if constexpr (detail::ends_in_bucket<Item> && !detail::takes_buckets<Stage>) {
    diagnose::report<diagnose::only_batch_after_bucket<diagnose::in_stage<Stage>>>();
    return broken_flow{};
  } else if constexpr (detail::stage_fits<Stage, Item>) {
    using next = flow<typename Stage::template out<Item>, Source, Stages..., Stage>;
    return next{{},
                std::move(before.source),
                before.seed,
                std::tuple_cat(std::move(before.stages), std::tuple<Stage>(std::move(stage)))};
  } else {
    Stage::template explain<Item>();
    return broken_flow{};
  }
}

template <class Item, class Source, class... Stages, class Thing>
  requires(!stage_like<Thing>)
constexpr broken_flow operator|(flow<Item, Source, Stages...>, Thing) {
  diagnose::report<diagnose::not_a_stage<Thing>>();
  return {};
}

template <class Thing>
constexpr broken_flow operator|(broken_flow broken, Thing) {
  return broken;
}

}  // namespace millrace::inline MILLRACE_ABI
