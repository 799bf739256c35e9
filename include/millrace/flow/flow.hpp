// A flow combines a source and its stages in one type. The operator `|` appends a stage.
//
//   auto flow = mr::from(clips) | mr::map(prepare) | mr::batch<&window::pixels, &window::id>({.size = 16});
//   using item = decltype(flow)::item;      // the item type at the end of the flow
//   auto run = mr::session{std::move(flow)};
//
// A flow only stores its source and its stages; it does not run them. Move the flow into the session that runs it.
// Errors: each mistake is a compile-time error at the '|'. flow/refusals.hpp contains the messages.
#pragma once

#include <millrace/flow/refusals.hpp>
#include <millrace/flow/stage_list.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A stage that creates new items, such as map() or expand().
template <class Stage>
concept creates_items = requires(const Stage& stage) { stage.callable; } ||
                        requires(const Stage& stage) { stage.expanding; };
template <class Item, class... Stages>
using refusals_of = diagnose::refusals<Item, !(creates_items<Stages> || ...)>;

/// A source followed by stages. Item is the type of the items at the end of the flow.
template <class Item, class Source, class... Stages>
struct flow : detail::refusals_of<Item, Stages...> {
  using item = Item;
  using source_type = Source;

  Source source;
  std::uint64_t seed = 0;   ///< seed of all random numbers in this flow
  stage_list<Stages...> stages{};

  using detail::refusals_of<Item, Stages...>::operator|;
};

/// Returns the flow with one more stage. Each stage type has these members:
///   template <class In> static constexpr diagnose::mistake mistake_on;   // none: the stage accepts items of type In
///   template <class In> using out = ...;                                 // the output type for items of type In
template <class Item, class Source, class... Stages, follows<Item, !(detail::creates_items<Stages> || ...)> Stage>
MILLRACE_RARE constexpr auto operator|(flow<Item, Source, Stages...> before, Stage stage) {
  using next = flow<typename Stage::template out<Item>, Source, Stages..., Stage>;
  return next{{}, std::move(before.source), before.seed, append(std::move(before.stages), std::move(stage))};
}

// clang-format off
/// Declared only for its error message: the operand before a stage must be a flow.
template <class Thing, stage_like Stage>
  requires(!flow_like<Thing>)
__attribute__((unavailable("millrace: the operand before '|' is not a flow: a flow begins with a source. Put it into "
                           "from(...), or begin with shards(...), files(...) or another source.")))
broken_flow operator|(Thing&&, const Stage&);
// clang-format on

/// Accepts any operand after a mistake, so that the compiler reports only the first mistake.
template <std::size_t Columns, class Thing>
constexpr broken_flow_of<Columns + added_columns<Thing>> operator|(broken_flow_of<Columns>, const Thing&) {
  return {};
}

}}}   // namespace millrace::detail
