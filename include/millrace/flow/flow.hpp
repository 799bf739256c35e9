// A source and the stages after it, as one type; and the '|' that joins them.
//
//   auto flow = mr::from(clips) | mr::map(prepare) | mr::batch<&window::pixels, &window::id>({.size = 16});
//   using item = decltype(flow)::item;      // what comes out at the end
//   auto run = mr::session{std::move(flow)};
//
// A flow is a value: it holds the source and the stages, does nothing, and is moved into the session that runs it.
// Errors: all at the '|', at compile time, one sentence each (flow/refusals.hpp).
#pragma once

#include <millrace/flow/refusals.hpp>

#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Stages that make new items of those that come; not those that choose or reorder them.
template <class Stage>
concept makes_items = requires(const Stage& stage) { stage.callable; } || requires(const Stage& stage) {
  stage.expanding;
};
template <class Item, class... Stages>
using refusals_of = diagnose::refusals<Item, !(makes_items<Stages> || ...)>;

}  // namespace detail

/// The run of stages behind a source.
template <class Item, class Source, class... Stages>
struct flow : detail::refusals_of<Item, Stages...> {
  using item = Item;
  using source_type = Source;

  Source source;
  std::uint64_t seed = 0;   ///< of everything random in this flow
  std::tuple<Stages...> stages{};

  using detail::refusals_of<Item, Stages...>::operator|;
};

/// What a stage says about itself to operator|. Each stage type has
///   template <class In> static constexpr diagnose::mistake mistake_on;   none: it can follow a flow of In
///   template <class In> using out = ...;                                 what it makes of it
template <class Item, class Source, class... Stages,
          detail::follows<Item, !(detail::makes_items<Stages> || ...)> Stage>
constexpr auto operator|(flow<Item, Source, Stages...> before, Stage stage) {
  using next = flow<typename Stage::template out<Item>, Source, Stages..., Stage>;
  return next{{},
              std::move(before.source),
              before.seed,
              std::tuple_cat(std::move(before.stages), std::tuple<Stage>(std::move(stage)))};
}

template <class Thing>
constexpr broken_flow operator|(broken_flow broken, const Thing&) {
  return broken;
}

}}  // namespace millrace
