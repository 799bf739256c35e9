// The compile-time errors of '|', one sentence for each mistake. flow/diagnose.hpp describes the technique.
//
//   template <class Item, class... Stages>
//   struct flow : mr::detail::refusals_of<Item, Stages...> {
//     using mr::detail::refusals_of<Item, Stages...>::operator|;
//   };
//
// Every flow has this using-declaration, so that g++ and clang++ report each error once.
#pragma once

// clang-format off: attributes before a declaration

#include <millrace/flow/diagnose.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The output type of `batch`. Only stages that accept this type may follow `batch`.
template <class Item>
concept ends_in_batch = requires {
  typename Item::batch_mark;
};
template <class Stage>
concept accepts_batches = requires {
  typename Stage::batch_mark;
};
/// The output type of `bucket`. Only `batch` accepts this type.
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
concept accepts_buckets = requires {
  typename Stage::takes_buckets_mark;
};

/// Returns the mistake that would occur if the stage were added to a flow of `Item`. `IsOfSource` is true if no earlier
/// stage creates new items.
template <class Stage, class Item, bool IsOfSource>
constexpr diagnose::mistake mistake_at() {
  using diagnose::mistake;
  if constexpr (!stage_like<Stage>) {
    return mistake::not_a_stage;
  } else if constexpr (std::same_as<Stage, broken_stage>) {
    return mistake::reported;
  } else if constexpr (ends_in_batch<Item> && !accepts_batches<Stage>) {
    return mistake::stage_after_batch;
  } else if constexpr (accepts_batches<Stage> && !ends_in_batch<Item> && !ends_in_bucket<Item>) {
    return mistake::no_batch_before;
  } else if constexpr (ends_in_bucket<Item> && !accepts_buckets<Stage>) {
    return mistake::stage_after_bucket;
  } else {
    constexpr mistake result = Stage::template mistake_on<Item>;
    return result == mistake::column_of_another_type && IsOfSource ? mistake::batch_before_map : result;
  }
}

template <class Stage, class Item, bool IsOfSource>
concept follows = mistake_at<Stage, Item, IsOfSource>() == diagnose::mistake::none;
template <class Stage, class Item, bool IsOfSource, diagnose::mistake Mistake>
concept refused = mistake_at<Stage, Item, IsOfSource>() == Mistake;

namespace diagnose {

/// The overloads of operator| for each mistake. Every flow derives from this class.
template <class Item, bool IsOfSource>
struct refusals : flow_tag {
  broken_flow operator|(const broken_stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::not_a_stage> Stage>
  __attribute__((unavailable("millrace: the operand after '|' is not a stage. Put a callable into map(...), or "
                             "an expanding type into expand(...).")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::stage_after_batch> Stage>
  __attribute__((unavailable("millrace: this stage follows batch: only mix_rows, prefetch and to_device may follow "
                             "batch. Put this stage before batch.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::stage_after_bucket> Stage>
  __attribute__((unavailable("millrace: this stage follows bucket: only batch<...> may follow bucket. Put this stage "
                             "before bucket.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_batch_before> Stage, class Got = flow_item<Item>>
  __attribute__((unavailable("millrace: mix_rows, prefetch and to_device have no batch before them. Put "
                             "batch<&item::column, ...> before them.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::accepts_another_type> Stage, class Got = flow_item<Item>,
            class Expected = stage_input<typename Stage::template expected_input<Item>>>
  __attribute__((unavailable("millrace: the stage after '|' does not accept the type that the flow produces here: got "
                             "flow_item<...>, expected stage_input<...>. Change its parameter, or the map before it.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::callable_is_mutable> Stage>
  __attribute__((unavailable("millrace: the callable in map() is 'mutable': it runs on many threads concurrently. "
                             "Declare its operator() const.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::accepts_a_reference> Stage, class Got = flow_item<Item>>
  __attribute__((unavailable("millrace: the callable in map() accepts its item by a reference that is not const, but "
                             "items are values. Accept it by const& or by value.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::arguments_are_swapped> Stage, class Got = flow_item<Item>>
  __attribute__((unavailable("millrace: the callable in map() accepts its arguments in the wrong order: expected "
                             "(item, rng&, scratch&). Put the item first.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::returns_nothing> Stage>
  __attribute__((unavailable("millrace: the callable in map() returns void: expected the next item. Return the item.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::item_is_immovable> Stage>
  __attribute__((unavailable("millrace: the item that this stage creates cannot be moved: items pass between threads. "
                             "Add a move constructor to its type.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::expanding_is_incomplete> Stage, class Got = flow_item<Item>>
  __attribute__((unavailable("millrace: the type in expand() is incomplete: expected 'using output = T;', "
                             "'max_outputs(const In&) const' and 'push(In, auto& emit)'. Add the missing members; "
                             "expand(stage, {.max_outputs = n}) needs no max_outputs().")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_columns> Stage>
  __attribute__((unavailable("millrace: batch<> has no columns. Name them, such as batch<&example::label>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::members_are_not_listed> Stage>
  __attribute__((unavailable("millrace: batch<T> needs an aggregate with 1 to 16 members, without a base class and "
                             "without an array such as int[3]. Name the columns: batch<&T::member, ...>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::batch_before_map> Stage, class Got = flow_item<Item>,
            class Column = column_of<typename Stage::template expected_input<Item>>>
  __attribute__((unavailable("millrace: batch<...> gets the unchanged items of the source: got flow_item<...>, "
                             "expected column_of<...>. Put map() before batch.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_of_another_type> Stage, class Got = flow_item<Item>,
            class Column = column_of<typename Stage::template expected_input<Item>>>
  __attribute__((unavailable("millrace: batch<...> names a member of a type that the flow does not produce here: got "
                             "flow_item<...>, expected column_of<...>. Name members of flow_item<...>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_text> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is text: rows are numbers. Convert it to numbers in "
                             "map(), or to a ragged<std::uint8_t>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_an_enum> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is an enum: rows are numbers. Convert it to an integer "
                             "in map(): static_cast<std::int32_t>(value).")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_an_array> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is an array whose elements are not columns: expected "
                             "numbers, or a type that can be a column. Create such elements in map().")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::column_is_a_vector> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is a vector whose elements are not numbers. Convert it "
                             "to a tensor, or a ragged row of numbers.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::not_a_column> Stage>
  __attribute__((unavailable("millrace: a column of batch<...> is not a row of numbers: expected a number, an array, a "
                             "ragged row, or shape() with span() or render(row). Name another member.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::no_length> Stage>
  __attribute__((unavailable("millrace: bucket<...> names a column without a length: expected a ragged column, or an "
                             "integer that contains the length. Name such a column.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::mixed_column_is_not_listed> Stage>
  __attribute__((unavailable("millrace: mix_rows<...> names a column that batch<...> does not list. Add it to "
                             "batch<...>.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::rows_are_not_mixable> Stage>
  __attribute__((unavailable("millrace: the first column of mix_rows<...> has no rows that can be mixed: expected u8, "
                             "f16, bf16 or f32 of one to three dimensions, such as images. Name such a column.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::label_is_not_a_number> Stage>
  __attribute__((unavailable("millrace: the second column of mix_rows<...> has no labels: expected a number for each "
                             "row. Name the column of the labels.")))
  broken_after<Stage> operator|(const Stage&) const;

  template <detail::refused<Item, IsOfSource, mistake::rows_are_mixed_twice> Stage>
  __attribute__((unavailable("millrace: rows are mixed twice: expected one mix_rows, mixup or cutmix. To use both, set "
                             "both alphas of mix_rows.")))
  broken_after<Stage> operator|(const Stage&) const;
};

}  // namespace diagnose

}}}  // namespace millrace::detail
