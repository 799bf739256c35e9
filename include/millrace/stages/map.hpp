// map: one item in, one item out, on many threads at once.
//
//   flow | mr::map(prepare)                                   // example prepare(const mr::record&, mr::draw&)
//        | mr::map([](example e) { ...; return e; })
//        | mr::map(ask_a_server, {.blocking = true, .threads = 16})
//
// The callable gets the item, and the sample's random stream (mr::draw&) and the worker's scratch memory
// (mr::scratch&) if it asks for them in this order. Errors: what it throws surfaces at its batch, after all earlier
// batches, completed with shard, key and position. Threads: called concurrently, so it must be callable when const.
// A callable that waits (network, locks) says `.blocking` and gets threads of its own; the workers never wait.
#pragma once

#include <millrace/flow/diagnose.hpp>

#include <type_traits>
#include <utility>

namespace millrace::inline MILLRACE_ABI {

struct map_options {
  bool blocking = false;   ///< the callable waits for something: run it on own threads
  unsigned threads = 8;    ///< how many, if blocking
};

template <class F>
struct map_stage : stage_tag {
  F callable;
  map_options options{};

  template <class In>
  static constexpr bool fits = [] {
    if constexpr (detail::callable_on<F, In>)
      return !std::is_void_v<detail::call_result<F, In>> && std::is_move_constructible_v<detail::call_result<F, In>>;
    else return false;
  }();
  template <class In>
  using out = std::remove_cvref_t<detail::call_result<F, In>>;
  template <class In>
  static constexpr bool draws = detail::draws_on<F, In>;

  template <class In>
  static constexpr void explain() {
    using namespace diagnose;
    if constexpr (detail::callable_on<F, In>) {
      if constexpr (std::is_void_v<detail::call_result<F, In>>) report<map_returns_nothing<in_stage<map_stage>>>();
      else report<item_cannot_be_moved<detail::call_result<F, In>>>();
    } else if constexpr (std::invocable<F&, In> || std::invocable<F&, In, draw&>) {
      report<callable_is_not_const<in_stage<map_stage>>>();
    } else {
      report<stages_do_not_fit<arrives<In>, wanted<typename first_parameter<F>::type>, in_stage<map_stage>>>();
    }
  }
};

template <class F>
constexpr auto map(F callable, map_options options = {}) {
  return map_stage<F>{{}, std::move(callable), options};
}

}  // namespace millrace::inline MILLRACE_ABI
