// What keeps a mistake in a flow from becoming ten, and how its sentence comes to stand at the user's own line.
//
//   error: 'operator|<map_stage<...>>' is unavailable: millrace: the callable in map() returns void: ...
//
// How it works: what is right and what is wrong are overloads of one name that exclude each other; those for what is
// wrong are declared `unavailable` with their sentence, which compilers print where the user calls them. They return a
// broken_flow, which swallows every later stage and yields poison, so that no second error follows. A member function
// and a constructor are reported once by g++, another function twice, so they are what most sentences hang on: those of
// operator| are in flow/refusals.hpp. Each sentence has a file in tests/errors.
#pragma once

#include <millrace/flow/stage.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace diagnose {

/// What can be wrong with a stage where it stands. Its sentence: flow/refusals.hpp.
enum class mistake {
  none,
  told,   // already
  not_a_stage,
  stage_after_batch,
  stage_after_bucket,
  no_batch_before,
  takes_another_type,
  callable_is_mutable,
  arguments_are_swapped,
  returns_nothing,
  item_is_immovable,
  expanding_is_incomplete,
  no_columns,
  batch_before_map,
  column_of_another_type,
  column_is_text,
  column_is_an_array,
  column_is_a_vector,
  not_a_column,
  no_length,
};

/// Shown as the wanted type where a callable is generic and has no single one.
struct any_type;
template <class>
struct arrives;
template <class>
struct wanted;
template <class>
struct column_of;

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

/// What takes the place of an option that is called otherwise here: a member of this name, of a type like these.
struct option_is_size {
  option_is_size() = default;
  template <class T>
  __attribute__((unavailable("millrace: batch has no option of this name: its rows are .size. Write .size = n")))
  option_is_size(T&&) {}
};
struct option_is_threads {
  option_is_threads() = default;
  template <class T>
  __attribute__((unavailable("millrace: there are no processes to count: workers are .threads. Write .threads = n")))
  option_is_threads(T&&) {}
};
struct option_is_window {
  option_is_window() = default;
  template <class T>
  __attribute__((unavailable("millrace: shuffle has no option of this name: it moves samples within its .window. "
                             "Write .window = n")))
  option_is_window(T&&) {}
};

/// What a stage is given instead of its options.
struct batch_of_a_number {
  template <std::integral N>
  __attribute__((unavailable("millrace: batch<...> is given a bare number. Name the option: batch<...>({.size = n}).")))
  batch_of_a_number(N);
};
struct prefetch_of_a_number {
  template <std::integral N>
  __attribute__((unavailable("millrace: prefetch is given a bare number. Name the option: prefetch({.batches = n}).")))
  prefetch_of_a_number(N);
};
struct shuffle_of_a_number {
  template <std::integral N>
  __attribute__((unavailable("millrace: shuffle is given a bare number. Name the option: shuffle({.window = n}).")))
  shuffle_of_a_number(N);
};

}  // namespace diagnose

/// Converts to anything, so that a loop over a broken session adds no error of its own.
struct poison {
  template <class T>
  operator T() const;
  template <auto...>
  poison get() const;
  poison columns() const;
  poison keys() const;
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

}}  // namespace millrace
