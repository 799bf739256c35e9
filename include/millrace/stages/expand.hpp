// expand: creates any number of items from one item, or drops the item. flow/stage.hpp shows how to write such a stage.
//
//   auto windows = mr::from(clips) | mr::expand(windows_of{.frames = 8})
//                | mr::filter([](const window& w) { return w.label != 7; });
//   auto sentences = mr::lines("books-{00..31}.txt.gz")
//                  | mr::expand(sentences_of{}, {.max_outputs = 1'000});      // for a stage without a known bound
//
// Outputs always keep the order of their inputs. The number of items in an epoch is not known in advance.
// Threads: a stage with a const push() and no finish() runs on all workers. Any other stage runs on its own thread, in
// order.
// Errors: push() may throw. If push() emits more items than the bound, the session throws setup_error. The bound is
// expand_options::max_outputs if it is set, else the result of the stage's max_outputs().
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/flow/diagnose.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// A stage whose state between two inputs can be restored from one number, which `fill_level()` returns. After
/// `restore_fill_level()`, the first output may differ from the output of an uninterrupted run. All later outputs are
/// equal.
template <class C>
concept has_fill_level = requires(C& c, const C& same, std::uint64_t number) {
  { same.fill_level() } -> std::same_as<std::uint64_t>;
  c.restore_fill_level(number);
};

/// These two templates are instantiated only after the compiler has checked the members of the stage. Therefore a
/// missing member causes a readable error.
template <class C, class>
struct output_of {
  using type = typename C::output;
};
template <class C, class>
struct push_parameter {
  using type = diagnose::any_type;
};
template <class C, class In>
  requires requires { sizeof(decltype(&C::push)); }
struct push_parameter<C, In> : diagnose::first_parameter<decltype(&C::push)> {};

/// If `Bounded` is true, expand_options contains the bound, and the stage does not need max_outputs().
template <class C, class In, bool Bounded>
constexpr diagnose::mistake mistake_of_expanding() {
  using diagnose::mistake;
  if constexpr (pushes<C, In> && (Bounded || bounds_outputs<C, In>)) {
    return std::is_move_constructible_v<typename C::output> ? mistake::none : mistake::item_is_immovable;
  } else {
    using takes = typename push_parameter<C, In>::type;
    if constexpr (std::same_as<takes, diagnose::any_type>) return mistake::expanding_is_incomplete;
    else return std::is_convertible_v<In, takes> ? mistake::expanding_is_incomplete : mistake::accepts_another_type;
  }
}

}   // namespace detail

/// Options of expand().
struct expand_options {
  std::size_t max_outputs = 0;   ///< maximum outputs of one item; overrides the stage's own max_outputs()
};

namespace detail {

/// The maximum number of outputs for one input, and whether the stage itself defines this bound.
struct output_bound {
  std::size_t count;
  bool promised;
};

/// The result of expand(). If `Bounded` is true, expand_options contains the bound, and the stage does not need
/// max_outputs().
template <class C, bool Bounded = false>
struct expand_stage : stage_tag {
  C expanding;
  expand_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = detail::mistake_of_expanding<C, In, Bounded>();
  template <class In>
  using out = typename detail::output_of<C, In>::type;
  /// True if push() may run on several threads concurrently.
  template <class In>
  static constexpr bool parallel = detail::pushes_const<C, In> && !detail::finishes<C>;
  /// Returns the maximum number of outputs of `item`.
  template <class In>
  detail::output_bound max_outputs(const In& item) const {
    if constexpr (Bounded) return {options.max_outputs, false};
    else return {expanding.max_outputs(item), true};
  }

  template <class In>
  using expected_input = typename detail::push_parameter<C, In>::type;
};

}   // namespace detail

/// Returns the stage that runs `expanding`. `expanding` must define max_outputs().
template <class C>
constexpr auto expand(C expanding) {
  return detail::expand_stage<C>{{}, std::move(expanding)};
}

/// Returns the stage that runs `expanding`, and uses options.max_outputs instead of expanding.max_outputs().
/// Throws setup_error if options.max_outputs is 0.
template <class C>
constexpr auto expand(C expanding, expand_options options) {
  if (options.max_outputs == 0)
    throw setup_error("expand() has no bound: got expand(stage, {.max_outputs = 0}), expected 1 or more",
                      "Set the maximum number of outputs per input");
  return detail::expand_stage<C, true>{{}, std::move(expanding), options};
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

/// The result of filter().
template <class Keep>
struct filter_stage : stage_tag {
  Keep keep;

  template <class In>
  static constexpr diagnose::mistake mistake_on = std::is_invocable_r_v<bool, const Keep&, const In&>
                                                      ? diagnose::mistake::none
                                                      : diagnose::mistake::accepts_another_type;
  template <class>
  using expected_input = typename diagnose::first_parameter<Keep>::type;
  template <class In>
  using out = In;
  template <class In>
  static constexpr bool parallel = true;
  /// Returns an equivalent expanding stage for items of type `In`.
  template <class In>
  auto as_expanding() && {
    return expand_stage<typename detail::filter_of<Keep>::template bound<In>>{{}, {std::move(keep)}};
  }
};

}   // namespace detail

/// Returns the stage that keeps the items for which `keep(item)` is true. The stage runs on all workers.
template <class Keep>
constexpr auto filter(Keep keep) {
  return detail::filter_stage<Keep>{{}, std::move(keep)};
}

}}   // namespace millrace
