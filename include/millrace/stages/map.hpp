// map: converts one item into one item, on many threads concurrently.
//
//   auto flow = mr::shards("train-{000..146}.tar")
//             | mr::map(prepare)                                   // example prepare(const mr::record&, mr::rng&)
//             | mr::map([](example e) { e.label -= 1;  return e; })
//             | mr::map(ask_a_server, {.blocking = true, .threads = 16});
//
// The callable receives the item. It may have one or both of these further parameters, in this order: the sample's
// random stream (mr::rng&) and the worker's scratch memory (mr::scratch&).
// Errors: if the callable throws, the session delivers the earlier batches. Then next(), which the loop over the
// session calls, throws the error. The error contains shard, key and position.
// Threads: several threads call the callable concurrently, so it must be callable through a const reference. Set
// `.blocking` for a callable that waits for a network or a lock. Separate threads run such a callable, so that the
// workers do not wait for it.
// Lifetime: the callable is moved, never copied. A flow with a move-only callable must be moved into the session.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/diagnose.hpp>

#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of map().
struct map_options {
  bool blocking = false;   ///< whether the callable waits, and therefore runs on separate threads
  unsigned threads = 8;    ///< number of separate threads of a blocking callable
};

namespace detail {

/// True if a callable that is not generic has its parameters in a wrong order, for example (rng&, item).
template <class F, class In>
concept swaps_arguments = !std::same_as<typename diagnose::first_parameter<F>::type, diagnose::any_type> &&
                          (std::invocable<F&, rng&, In> || std::invocable<F&, scratch&, In> ||
                           std::invocable<F&, rng&, In, scratch&> || std::invocable<F&, rng&, scratch&, In> ||
                           std::invocable<F&, scratch&, In, rng&> || std::invocable<F&, scratch&, rng&, In> ||
                           std::invocable<F&, In, scratch&, rng&>);

/// True if a callable accepts the item by a reference that is not const.
template <class F, class In>
concept takes_lvalues = std::invocable<F&, In&> || std::invocable<F&, In&, rng&> || std::invocable<F&, In&, scratch&> ||
                        std::invocable<F&, In&, rng&, scratch&>;

template <class F, class In>
constexpr diagnose::mistake mistake_of_map() {
  using diagnose::mistake;
  if constexpr (callable_on<F, In>) {
    using result = call_result<F, In>;
    if constexpr (std::is_void_v<result>) return mistake::returns_nothing;
    else return std::is_move_constructible_v<result> ? mistake::none : mistake::item_is_immovable;
  } else if constexpr (std::invocable<F&, In> || std::invocable<F&, In, rng&> || std::invocable<F&, In, scratch&> ||
                       std::invocable<F&, In, rng&, scratch&>) {
    return mistake::callable_is_mutable;
  } else if constexpr (takes_lvalues<F, In>) {
    return mistake::accepts_a_reference;
  } else {
    return swaps_arguments<F, In> ? mistake::arguments_are_swapped : mistake::accepts_another_type;
  }
}

/// The result of map().
template <class F>
struct map_stage : stage_tag {
  F callable;
  map_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = detail::mistake_of_map<F, In>();
  template <class In>
  using out = std::remove_cvref_t<detail::call_result<F, In>>;
  template <class In>
  static constexpr bool draws = detail::draws_on<F, In>;
  template <class>
  using expected_input = typename diagnose::first_parameter<F>::type;
};

}   // namespace detail

/// Returns the stage that calls `callable` on each item. An overloaded function has no single type: wrap it in a
/// lambda.
template <class F>
constexpr auto map(F callable, map_options options = {}) {   // millrace: wrap an overloaded function in a lambda
  return detail::map_stage<F>{{}, std::move(callable), options};
}

}}   // namespace millrace
