// Holds the compile-time errors of '|', one sentence for each mistake; flow/diagnose.hpp tells how they work.
//
//   template <class Item, class... Stages>
//   struct flow : mr::detail::refusals_of<Item, Stages...> {
//     using mr::detail::refusals_of<Item, Stages...>::operator|;
//   };
//
// The overloads are members that flow names by a using-declaration: this way g++ and clang++ both report them once.
#pragma once

#include <millrace/flow/diagnose.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// `batch` marks its items, and the stages that accept them carry the same mark: only these may follow.
template <class Item>
concept ends_in_batch = requires {
  typename Item::batch_mark;
};
template <class Stage>
concept takes_batches = requires {
  typename Stage::batch_mark;
};
/// `bucket` marks its items too: only batch accepts them.
template <class Item>
concept ends_in_bucket = requires {
  typename Item::bucket_mark;
};
template <class Item>
struct unwrapped_bucket {
  using type = Item;
};
template <ends_in_bucket Item>
struct unwrapped_bucket<Item> {
  using type = typename Item::item;
};
template <class Item>
using item_for_batch = typename unwrapped_bucket<Item>::type;
template <class Stage>
concept takes_buckets = requires {
  typename Stage::takes_buckets_mark;
};

/// Returns the mistake of a stage behind a flow of `Item`; IsOfSource: the items come from the source unchanged.
template <class Stage, class Item, bool IsOfSource>
constexpr diagnose::mistake mistake_at() {
  using diagnose::mistake;
  if constexpr (!stage_like<Stage>) {
    return mistake::not_a_stage;
  } else if constexpr (std::same_as<Stage, broken_stage>) {
    return mistake::told;
  } else if constexpr (ends_in_batch<Item> && !takes_batches<Stage>) {
    return mistake::stage_after_batch;
  } else if constexpr (takes_batches<Stage> && !ends_in_batch<Item> && !ends_in_bucket<Item>) {
    return mistake::no_batch_before;
  } else if constexpr (ends_in_bucket<Item> && !takes_buckets<Stage>) {
    return mistake::stage_after_bucket;
  } else {
    constexpr mistake found = Stage::template mistake_on<Item>;
    return found == mistake::column_of_another_type && IsOfSource ? mistake::batch_before_map : found;
  }
}

template <class Stage, class Item, bool IsOfSource>
concept follows = mistake_at<Stage, Item, IsOfSource>() == diagnose::mistake::none;
template <class Stage, class Item, bool IsOfSource, diagnose::mistake Mistake>
concept refused = mistake_at<Stage, Item, IsOfSource>() == Mistake;

namespace diagnose {

/// The overloads of operator| for each mistake; every flow derives from this.
template <class Item, bool IsOfSource>
struct refusals : flow_tag {
  broken_flow operator|(const broken_stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::not_a_stage> Stage>
  __attribute__((unavailable("millrace: what follows '|' is not a stage. Put a callable into map(...), an expanding "
                             "type into expand(...).")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::stage_after_batch> Stage>
  __attribute__((unavailable("millrace: this stage stands behind batch: only mix_rows, prefetch and to_device may "
                             "follow batch. Put it before batch.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::stage_after_bucket> Stage>
  __attribute__((unavailable("millrace: this stage stands behind bucket: only batch<...> may follow bucket. Put it "
                             "before bucket.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_batch_before> Stage, class Arrives = arrives<Item>>
  __attribute__((unavailable("millrace: mix_rows, prefetch and to_device have no batch before them. Put "
                             "batch<&item::column, ...> before them.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::takes_another_type> Stage, class Arrives = arrives<Item>,
            class Wanted = wanted<typename Stage::template wanted_instead_of<Item>>>
  __attribute__((unavailable("millrace: the stage after '|' takes another type than the flow makes here: got "
                             "arrives<...>, expected wanted<...>. Change its parameter, or the map before it.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::callable_is_mutable> Stage>
  __attribute__((unavailable("millrace: the callable in map() is 'mutable': it runs on many threads at once. Make its "
                             "operator() const.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::takes_a_reference> Stage, class Arrives = arrives<Item>>
  __attribute__((unavailable("millrace: the callable in map() takes its item by a reference that is not const, and "
                             "items arrive as values. Take it by const& or by value.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::arguments_are_swapped> Stage, class Arrives = arrives<Item>>
  __attribute__((unavailable("millrace: the callable in map() takes its arguments in another order: expected (item, "
                             "rng&, scratch&). Put the item first.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::returns_nothing> Stage>
  __attribute__((unavailable("millrace: the callable in map() returns void: expected the next item. Return it.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::item_is_immovable> Stage>
  __attribute__((unavailable("millrace: the item that this stage makes cannot be moved: items travel between threads. "
                             "Give its type a move constructor.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::expanding_is_incomplete> Stage, class Arrives = arrives<Item>>
  __attribute__((unavailable("millrace: the type in expand() is incomplete: expected 'using output = T;', "
                             "'max_outputs(const In&) const' and 'push(In, auto& emit)'. Add what is missing; "
                             "expand(stage, {.max_outputs = n}) needs no max_outputs().")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_columns> Stage>
  __attribute__((unavailable("millrace: batch<> has no columns. Name them, such as batch<&example::label>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::members_are_not_listed> Stage>
  __attribute__((unavailable("millrace: batch<T> takes all members of an aggregate with 1 to 16 members, without a "
                             "base class or an array such as int[3]. Name the columns: batch<&T::member, ...>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::batch_before_map> Stage, class Arrives = arrives<Item>,
            class Column = column_of<typename Stage::template wanted_instead_of<Item>>>
  __attribute__((unavailable("millrace: batch<...> is given items as the source makes them: got arrives<...>, expected "
                             "column_of<...>. Put map() before batch: map comes first.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_of_another_type> Stage, class Arrives = arrives<Item>,
            class Column = column_of<typename Stage::template wanted_instead_of<Item>>>
  __attribute__((unavailable("millrace: batch<...> names a member of another type than the flow makes here: got "
                             "arrives<...>, expected column_of<...>. Name members of what arrives.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_text> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is text: rows are numbers. Make numbers of it in map(), "
                             "or a ragged<std::uint8_t>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_an_enum> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is an enum: rows are numbers. Make an integer of it in "
                             "map(): static_cast<std::int32_t>(value).")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_an_array> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is an array whose elements are not columns: expected "
                             "numbers, or a type that is a column by itself. Make such elements in map().")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_a_vector> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is a vector whose elements are not numbers. Make it a "
                             "tensor, or a ragged row of numbers.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::not_a_column> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is not a row of numbers: expected a number, an array, a "
                             "ragged row, or shape() with span() or render(row). Name another member.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_length> Stage>
  __attribute__((unavailable("millrace: bucket<...> names a column without a length: expected a ragged one, or an "
                             "integer that says it. Name such a column.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::mixed_column_is_not_listed> Stage>
  __attribute__((unavailable("millrace: mix_rows<...> names a column that batch<...> does not list. Add it to "
                             "batch<...>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::rows_are_not_mixable> Stage>
  __attribute__((unavailable("millrace: the first column of mix_rows<...> has no rows that can be mixed: expected u8, "
                             "f16, bf16 or f32 of one to three dimensions, such as pictures. Name such a column.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::label_is_not_a_number> Stage>
  __attribute__((unavailable("millrace: the second column of mix_rows<...> holds no labels: expected a number for each "
                             "row. Name the column of the labels.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::rows_are_mixed_twice> Stage>
  __attribute__((unavailable("millrace: rows are mixed twice: expected one mix_rows, mixup or cutmix. Give mix_rows "
                             "both alphas, to mix by either in turn.")))
  broken_after<Stage> operator|(const Stage&) const;
};

}  // namespace diagnose

}}}  // namespace millrace::detail
