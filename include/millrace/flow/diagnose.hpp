// Turns each mistake in a flow into one compiler error at the user's own line.
//
//   error: 'operator|<map_stage<...>>' is unavailable: millrace: the callable in map() returns void: ...
//
// Valid and invalid calls select different overloads of one name. Overloads for invalid calls are declared
// `unavailable` with a sentence. Compilers print this sentence at the user's call. An invalid call returns a
// broken_flow, or a broken_stage. A flow with a broken_stage is a broken_flow. A broken_flow accepts every later stage.
// Therefore no second error follows. Most `unavailable` overloads are member functions or constructors, because g++
// reports the call of a free function twice.
#pragma once

#include <millrace/flow/stage.hpp>

#include <tuple>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace diagnose {

/// The mistakes that a stage can have at its position in a flow. flow/refusals.hpp contains their messages.
enum class mistake {
  none,
  reported,   // the stage has already reported its mistake
  not_a_stage,
  stage_after_batch,
  stage_after_bucket,
  no_batch_before,
  accepts_another_type,
  callable_is_mutable,
  accepts_a_reference,
  arguments_are_swapped,
  returns_nothing,
  item_is_immovable,
  expanding_is_incomplete,
  no_columns,
  members_are_not_listed,
  batch_before_map,
  column_of_another_type,
  column_is_text,
  column_is_an_enum,
  column_is_an_array,
  column_is_a_vector,
  not_a_column,
  no_length,
  mixed_column_is_not_listed,
  rows_are_not_mixable,
  label_is_not_a_number,
  rows_are_mixed_twice,
};

/// Shown in messages as the parameter type of a generic callable.
struct any_type;
/// In the compiler's message, shows the item type of the flow.
template <class>
struct flow_item;
/// In the compiler's message, shows the type that the stage accepts.
template <class>
struct stage_input;
/// In the compiler's message, shows the struct that has the column as a member.
template <class>
struct column_of;

/// The type of a callable's first parameter; any_type if the callable is generic.
template <class F>
struct first_parameter {
  using type = any_type;
};
template <class R, class A, class... B, bool Noexcept>
struct first_parameter<R (*)(A, B...) noexcept(Noexcept)> {
  using type = A;
};
template <class R, class C, class A, class... B, bool Noexcept>
struct first_parameter<R (C::*)(A, B...) noexcept(Noexcept)> {
  using type = A;
};
template <class R, class C, class A, class... B, bool Noexcept>
struct first_parameter<R (C::*)(A, B...) const noexcept(Noexcept)> {
  using type = A;
};
template <class F>
  requires requires { &F::operator(); }
struct first_parameter<F> : first_parameter<decltype(&F::operator())> {};

// The next structs are parameter types of overloads that catch common mistakes, for example an option name from another
// library. The error message contains the right name. A call with `{}` selects the overload with the real options,
// because `{}` cannot initialize these structs.
/// Catches batch<...>(256).
struct batch_of_a_number {
  // clang-format off
  template <std::integral N>
  __attribute__((unavailable("millrace: batch<...> got a bare number. Name the option: batch<...>({.size = n}).")))
  batch_of_a_number(N);
  // clang-format on
};
/// Catches an option under another name: batch<...>({.batch_size = 256}).
struct batch_by_another_name {
  struct option {
    // clang-format off
    template <class T>
    __attribute__((unavailable("millrace: batch has no option of this name: .size is its number of rows. Write .size")))
    option(T&&);
    // clang-format on
  } batch_size;
  bool drop_last = true, pad_last = false, allow_empty = false, keys = false;
};
/// Catches prefetch(4).
struct prefetch_of_a_number {
  // clang-format off
  template <std::integral N>
  __attribute__((unavailable("millrace: prefetch got a bare number. Name the option: prefetch({.batches = n}).")))
  prefetch_of_a_number(N);
  // clang-format on
};
/// Catches shuffle(1000).
struct shuffle_of_a_number {
  // clang-format off
  template <std::integral N>
  __attribute__((unavailable("millrace: shuffle got a bare number. Name the option: shuffle({.window = n}).")))
  shuffle_of_a_number(N);
  // clang-format on
};
/// Catches session{flow, {.num_workers = 8}}.
struct session_by_another_name {
  std::size_t epochs = 1, epoch_batches = 0;
  struct option {
    // clang-format off
    template <class T>
    __attribute__((unavailable("millrace: a session has worker threads instead of processes. Write .threads = n")))
    option(T&&);
    // clang-format on
  } num_workers;
};
/// Catches shuffle({.buffer_size = 1000}).
struct shuffle_by_another_name {
  struct option {
    // clang-format off
    template <class T>
    __attribute__((unavailable("millrace: shuffle has no option of this name: the range in which it moves samples is "
                               ".window. Write .window = n")))
    option(T&&);
    // clang-format on
  } buffer_size;
};

}   // namespace diagnose

/// Converts to any type, so that a loop over a broken session adds no error.
struct broken_batch {
  template <class T>
  operator T() const;
  template <auto...>
  broken_batch get() const;
  broken_batch columns() const;
  broken_batch keys() const;
  broken_batch label_a() const;
  broken_batch label_b() const;
  broken_batch lambda() const;
  broken_batch mixed_labels() const;
  broken_batch row_mixes() const;
  broken_batch stream() const;
  broken_batch size() const;
  broken_batch epoch() const;
  broken_batch step() const;
};

/// A broken_batch for a loop that destructures a batch into `Columns` columns.
template <std::size_t Columns>
struct broken_batch_of : broken_batch {};

/// The result of a `|` with a mistake. This type accepts every later stage, so that the compiler prints only one
/// sentence. `Columns` is the number of columns in a batch of the flow.
template <std::size_t Columns>
struct broken_flow_of : flow_tag {
  using item = broken_batch;
};
using broken_flow = broken_flow_of<0>;
template <class Flow>
inline constexpr bool is_broken_flow = false;
template <std::size_t Columns>
inline constexpr bool is_broken_flow<broken_flow_of<Columns>> = true;

/// The number of columns that a stage adds to a batch.
template <class Stage>
inline constexpr std::size_t added_columns = 0;
template <class Stage>
  requires requires { Stage::added_columns; }
inline constexpr std::size_t added_columns<Stage> = Stage::added_columns;
/// The result of a `|` with a mistake at this stage.
template <class Stage>
using broken_after = broken_flow_of<added_columns<Stage>>;

/// The result of a stage function that was called with a mistake.
struct broken_stage : stage_tag {};

}}}   // namespace millrace::detail

template <std::size_t Columns>
struct std::tuple_size<millrace::detail::broken_batch_of<Columns>> : std::integral_constant<std::size_t, Columns> {};
template <std::size_t Index, std::size_t Columns>
struct std::tuple_element<Index, millrace::detail::broken_batch_of<Columns>> {
  using type = millrace::detail::broken_batch;
};
