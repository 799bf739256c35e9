// Every sentence that a mistake in a flow can produce at compile time, and what keeps one mistake from becoming ten.
//
//   millrace: the stage after '|' cannot take the item that the flow makes here (...)
//
// How it works: operator| decides with `if constexpr`; the failing branch names one of the types below, whose
// static_assert carries the sentence and whose template arguments show the types; then it returns a broken_flow, which
// swallows every later stage and yields poison, so that no second error follows. Each has a file in tests/errors.
#pragma once

#include <millrace/flow/stage.hpp>

namespace millrace::inline MILLRACE_ABI {

namespace diagnose {

template <class...>
inline constexpr bool never = false;

/// Shown as the wanted type where a callable is generic and has no single one.
struct any_type;
template <class>
struct arrives;
template <class>
struct wanted;
template <class>
struct in_stage;
template <class>
struct returned;
template <class>
struct column_of;

template <class Arrives, class Wanted, class Stage>
struct stages_do_not_fit {
  static_assert(never<Stage>,
                "millrace: the stage after '|' cannot take the item that the flow makes here "
                "(compare arrives<...> and wanted<...>)");
};
template <class Stage>
struct callable_is_not_const {
  static_assert(never<Stage>,
                "millrace: a callable in map() runs on many threads, so it cannot be 'mutable': "
                "make its operator() const");
};
template <class Stage>
struct map_returns_nothing {
  static_assert(never<Stage>, "millrace: the callable in map() returns void; it needs to return the next item");
};
template <class Stage>
struct expanding_stage_is_incomplete {
  static_assert(never<Stage>,
                "millrace: an expanding stage needs 'using output = T;', 'max_outputs(const In&) const' "
                "and 'push(In, auto& emit)'");
};
template <class Column>
struct not_a_column {
  static_assert(never<Column>,
                "millrace: a batch column must be a number, an array, or have shape() with span() or "
                "render(row)");
};
template <class Column, class Item>
struct column_of_another_type {
  static_assert(never<Column>,
                "millrace: batch<...> names a member of another type than the item that the flow makes "
                "here (compare column_of<...> and arrives<...>)");
};
template <class Stage>
struct after_batch {
  static_assert(never<Stage>, "millrace: only prefetch and to_device may follow batch; put this stage before it");
};
template <class Arrives, class Stage>
struct needs_batch_first {
  static_assert(never<Stage>, "millrace: prefetch and to_device need batch<&item::column, ...> before them");
};
template <class Flow>
struct flow_has_no_batch {
  static_assert(never<Flow>, "millrace: a session needs a flow that ends in batch<...>, prefetch or to_device");
};
template <class Thing>
struct not_a_stage {
  static_assert(never<Thing>,
                "millrace: what follows '|' is no stage; put a callable into map(...), an expanding "
                "type into expand(...)");
};
template <class Thing>
struct not_a_source {
  static_assert(never<Thing>,
                "millrace: from() needs a range, a callable that returns std::optional<item>, or a source "
                "with item, parts() and open(part, epoch)");
};
template <class Column>
struct batch_has_no_such_column {
  static_assert(never<Column>, "millrace: get<...> names a column that batch<...> does not list");
};
template <class Flow>
struct source_cannot_be_mixed {
  static_assert(never<Flow>,
                "millrace: behind a source of mix() there may be a shuffle, then maps; put other stages behind mix()");
};
template <class... Sources>
struct mix_of_indexed_and_others {
  static_assert(never<Sources...>,
                "millrace: mix() takes sources that all have an index (indexed_shards), or none that has one");
};
template <class... Things>
struct mix_takes_weighted_flows {
  static_assert(never<Things...>,
                "millrace: mix() takes its options and then its sources, each as weighted{flow, weight}");
};
template <class... Items>
struct mixed_items_differ {
  static_assert(never<Items...>,
                "millrace: the sources of mix() end in items of different types (see arrives<...>, in order): give "
                "each a map() to the same one");
};
template <class Item>
struct item_cannot_be_moved {
  static_assert(never<Item>, "millrace: items travel between threads, so an item type needs to be movable");
};
template <class Stage>
struct stage_is_there_twice {
  static_assert(never<Stage>, "millrace: a flow takes prefetch and to_device once each, prefetch first");
};

/// Names a diagnosis, which is what makes the compiler print it.
template <class Diagnosis>
constexpr void report() {
  static_cast<void>(sizeof(Diagnosis));
}

/// The first parameter of a callable, where it can be read off it.
template <class F>
struct first_parameter {
  using type = any_type;
};
template <class R, class A, class... B>
struct first_parameter<R (*)(A, B...)> {
  using type = A;
};
template <class R, class C, class A, class... B>
struct first_parameter<R (C::*)(A, B...)> {
  using type = A;
};
template <class R, class C, class A, class... B>
struct first_parameter<R (C::*)(A, B...) const> {
  using type = A;
};
template <class F>
  requires requires { &F::operator(); }
struct first_parameter<F> : first_parameter<decltype(&F::operator())> {};

}  // namespace diagnose

/// Converts to anything, so that a loop over a broken session adds no error of its own.
struct poison {
  template <class T>
  operator T() const;
  template <auto...>
  poison get() const;
  poison columns() const;
  poison stream() const;
  poison size() const;
  poison epoch() const;
  poison step() const;
};

/// What a mistake makes of a flow, so that one sentence is all that the compiler says.
struct broken_flow : flow_tag {
  using item = poison;
};
/// The same of a stage.
struct broken_stage : stage_tag {};

}  // namespace millrace::inline MILLRACE_ABI
