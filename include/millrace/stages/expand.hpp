// expand: one item in, any number of items out (0 drops it). The shape of such a stage is in flow/stage.hpp.
//
//   flow | mr::expand(windows_of{.frames = 8})
//        | mr::filter([](const example& e) { return e.label != 7; })
//
// Outputs keep the order of their inputs, whatever runs in parallel. A stage with a const push and no finish runs on
// all workers; one with state runs on a thread of its own, in order. Errors: throw from push; emitting more than
// max_outputs() promised is an error too, since only that much room is kept. Epochs then have as many items as come
// out, so their number is not known in advance.
#pragma once

#include <millrace/flow/diagnose.hpp>

#include <utility>

namespace millrace::inline MILLRACE_ABI {

namespace detail {

/// A stage whose state between two inputs can be had again from one number, as far as it matters for what comes behind
/// the first output from then on. `held()` says it, `set_held()` goes there.
template <class C>
concept holds_a_number = requires(C& c, const C& same, std::uint64_t number) {
  { same.held() } -> std::same_as<std::uint64_t>;
  c.set_held(number);
};

}  // namespace detail

template <class C>
struct expand_stage : stage_tag {
  C expanding;

  template <class In>
  static constexpr bool fits = detail::pushes<C, In> && detail::bounds_outputs<C, In> &&
                               std::is_move_constructible_v<typename C::output>;
  template <class In>
  using out = typename C::output;
  /// Whether pushes may run at the same time.
  template <class In>
  static constexpr bool parallel = detail::pushes_const<C, In> && !detail::finishes<C>;

  template <class In>
  static constexpr void explain() {
    using namespace diagnose;
    if constexpr (requires { &C::push; }) {
      using takes = typename first_parameter<decltype(&C::push)>::type;
      if constexpr (std::is_convertible_v<In, takes>) report<expanding_stage_is_incomplete<in_stage<C>>>();
      else report<stages_do_not_fit<arrives<In>, wanted<takes>, in_stage<expand_stage>>>();
    } else {
      report<expanding_stage_is_incomplete<in_stage<C>>>();
    }
  }
};

template <class C>
constexpr auto expand(C expanding) {
  if constexpr (requires { typename C::output; }) {
    return expand_stage<C>{{}, std::move(expanding)};
  } else {
    diagnose::report<diagnose::expanding_stage_is_incomplete<diagnose::in_stage<C>>>();
    return broken_stage{};
  }
}

namespace detail {

template <class Keep>
struct filter_of {
  Keep keep;

  template <class In>
  struct bound {
    using output = In;
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
  static constexpr bool fits = std::is_invocable_r_v<bool, const Keep&, const In&>;
  template <class In>
  using out = In;
  template <class In>
  static constexpr bool parallel = true;
  /// The same thing as an expanding stage for items of type In.
  template <class In>
  auto as_expanding() const {
    return expand_stage<typename detail::filter_of<Keep>::template bound<In>>{{}, {keep}};
  }

  template <class In>
  static constexpr void explain() {
    using namespace diagnose;
    report<stages_do_not_fit<arrives<In>, wanted<typename first_parameter<Keep>::type>, in_stage<filter_stage>>>();
  }
};

template <class Keep>
constexpr auto filter(Keep keep) {
  return filter_stage<Keep>{{}, std::move(keep)};
}

}  // namespace millrace::inline MILLRACE_ABI
