// expand: one item in, any number of items out (0 drops it). The shape of such a stage is in flow/stage.hpp.
//
//   flow | mr::expand(windows_of{.frames = 8})
//        | mr::filter([](const example& e) { return e.label != 7; })
//   flow | mr::expand(sentences_of{}, {.max_outputs = 1'000})      // where the stage cannot know how many there are
//
// Outputs keep the order of their inputs, whatever runs in parallel. A stage with a const push and no finish runs on
// all workers; one with state runs on a thread of its own, in order. Errors: throw from push; emitting more than
// max_outputs() promised, or than the option says, is an error too. Epochs then have as many items as come
// out, so their number is not known in advance.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/flow/diagnose.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A stage whose state between two inputs can be had again from one number, as far as it matters for what comes behind
/// the first output from then on. `held()` says it, `set_held()` goes there.
template <class C>
concept holds_a_number = requires(C& c, const C& same, std::uint64_t number) {
  { same.held() } -> std::same_as<std::uint64_t>;
  c.set_held(number);
};

/// Looked up where it is asked for: a type without them gets its sentence first.
template <class C, class>
struct output_of {
  using type = typename C::output;
};
template <class C, class>
struct taken_by_push {
  using type = diagnose::any_type;
};
template <class C, class In>
  requires requires { sizeof(decltype(&C::push)); }
struct taken_by_push<C, In> : diagnose::first_parameter<decltype(&C::push)> {};

/// `Bounded`: it needs no max_outputs().
template <class C, class In, bool Bounded>
constexpr diagnose::mistake mistake_of_expanding() {
  using diagnose::mistake;
  if constexpr (pushes<C, In> && (Bounded || bounds_outputs<C, In>)) {
    return std::is_move_constructible_v<typename C::output> ? mistake::none : mistake::item_is_immovable;
  } else {
    using takes = typename taken_by_push<C, In>::type;
    if constexpr (std::same_as<takes, diagnose::any_type>) return mistake::expanding_is_incomplete;
    else return std::is_convertible_v<In, takes> ? mistake::expanding_is_incomplete : mistake::takes_another_type;
  }
}

}  // namespace detail

struct expand_options {
  std::size_t max_outputs = 0;   ///< most that the stage makes of one item; comes before its own max_outputs()
};

namespace detail {

/// Most outputs of one input, and whether the stage itself promised it.
struct output_bound {
  std::size_t count;
  bool promised;
};

}  // namespace detail

/// `Bounded`: by expand_options, so that the stage needs no max_outputs().
template <class C, bool Bounded = false>
struct expand_stage : stage_tag {
  C expanding;
  expand_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = detail::mistake_of_expanding<C, In, Bounded>();
  template <class In>
  using out = typename detail::output_of<C, In>::type;
  /// Whether pushes may run at the same time.
  template <class In>
  static constexpr bool parallel = detail::pushes_const<C, In> && !detail::finishes<C>;
  template <class In>
  detail::output_bound most_outputs(const In& item) const {
    if constexpr (Bounded) return {options.max_outputs, false};
    else return {expanding.max_outputs(item), true};
  }

  template <class In>
  using wanted_instead_of = typename detail::taken_by_push<C, In>::type;
};

template <class C>
constexpr auto expand(C expanding) {
  return expand_stage<C>{{}, std::move(expanding)};
}

/// With a bound for stages that have no max_outputs(), or one that is wrong.
template <class C>
constexpr auto expand(C expanding, expand_options options) {
  if (options.max_outputs == 0)
    throw setup_error("expand() has no bound: got expand(stage, {.max_outputs = 0}), expected 1 or more",
                      "Say how many items the stage makes of one at most");
  return expand_stage<C, true>{{}, std::move(expanding), options};
}

namespace detail {

template <class Keep>
struct filter_of {
  Keep keep;

  template <class In>
  struct bound {
    using output = In;
    using keeps_name_mark = void;
    Keep keep;
    std::size_t max_outputs(const In&) const { return 1; }
    void push(In item, auto& emit) const {
      if (keep(std::as_const(item))) emit(std::move(item));
    }
  };
};

}  // namespace detail

/// Keeps the items for which `keep(item)` is true.
template <class Keep>
struct filter_stage : stage_tag {
  Keep keep;

  template <class In>
  static constexpr diagnose::mistake mistake_on = std::is_invocable_r_v<bool, const Keep&, const In&>
                                                      ? diagnose::mistake::none
                                                      : diagnose::mistake::takes_another_type;
  template <class>
  using wanted_instead_of = typename diagnose::first_parameter<Keep>::type;
  template <class In>
  using out = In;
  template <class In>
  static constexpr bool parallel = true;
  /// The same thing as an expanding stage for items of type In.
  template <class In>
  auto as_expanding() && {
    return expand_stage<typename detail::filter_of<Keep>::template bound<In>>{{}, {std::move(keep)}};
  }
};

template <class Keep>
constexpr auto filter(Keep keep) {
  return filter_stage<Keep>{{}, std::move(keep)};
}

}}  // namespace millrace
