// batch: turns items into the rows of a batch; member pointers name its columns.
//
//   auto flow = mr::shards("train-{000..146}.tar") | mr::map(prepare)
//             | mr::batch<example>({.size = 256})      // all members; or batch<&example::pixels, &example::label>
//             | mr::prefetch({.batches = 4})
//             | mr::to_device({.device = mr::best_device()});
//
// item/column/columns.hpp lists the allowed types of columns. The worker that created an item also writes the item's
// row directly into the slot (the memory of the batch). The run's first sample defines the shapes.
// Evaluation: if pad_last is true, masked rows complete the last batch of an epoch. Therefore every batch has `size`
// rows on every rank, and each sample occurs exactly once over all ranks. b.valid() is 1 for rows with a sample. Masked
// rows are the last rows of the batch. Masked rows contain zeros (length 0 in a ragged column) and have an empty key.
// prefetch sets the maximum number of batches on the host that are ready or in preparation. The default is 2 to 4, or
// up to 16 if the batches are small.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/item/column/columns.hpp>

#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of batch().
struct batch_options {
  std::size_t size = 32;      ///< rows in a batch
  bool drop_last = true;      ///< whether a short last batch of an epoch is dropped without being decoded
  bool pad_last = false;      ///< whether masked rows fill up the short last batch; if true, drop_last has no effect
  bool allow_empty = false;   ///< whether a rank may get no rows of a short batch; else such a batch is a setup_error
  bool keys = false;          ///< whether b.keys() contains the key of each row's sample
};

namespace detail {

/// The item type of a flow after batch: represents a batch with these columns.
template <auto... Members>
struct batched {
  using batch_mark = void;
};

/// The item type of a flow after mix_rows (stages/mix_rows.hpp).
template <auto Pixels, auto Label, auto... Members>
struct mixed_batched;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_std_vector = false;
template <class T, class Allocator>
inline constexpr bool is_std_vector<std::vector<T, Allocator>> = true;

template <class T>
constexpr diagnose::mistake mistake_of_column() {
  using diagnose::mistake;
  if constexpr (column_type<T>) return mistake::none;
  else if constexpr (std::is_convertible_v<const T&, std::string_view>) return mistake::column_is_text;
  else if constexpr (std::is_enum_v<T>) return mistake::column_is_an_enum;
  else if constexpr (is_std_array<T>) return mistake::column_is_an_array;
  else if constexpr (is_std_vector<T>) return mistake::column_is_a_vector;
  else return mistake::not_a_column;
}

/// The class of the first member that does not belong to Item; Item if all members belong to it.
template <class Item, auto... Members>
struct owner_other_than {
  using type = Item;
};
template <class Item, auto First, auto... Rest>
struct owner_other_than<Item, First, Rest...> {
  using type = member_owner<First>;
};
template <class Item, auto First, auto... Rest>
  requires std::same_as<member_owner<First>, Item>
struct owner_other_than<Item, First, Rest...> : owner_other_than<Item, Rest...> {};

template <class Item, auto... Members>
constexpr diagnose::mistake mistake_of_columns() {
  using diagnose::mistake;
  if (sizeof...(Members) == 0) return mistake::no_columns;
  mistake result = (std::same_as<member_owner<Members>, Item> && ...) ? mistake::none : mistake::column_of_another_type;
  ((result = result == mistake::none ? mistake_of_column<member_type<Members>>() : result), ...);
  return result;
}

/// Returns whether an incomplete last batch is dropped.
constexpr bool drops_last(const batch_options& o) noexcept { return o.drop_last && !o.pad_last; }

/// The result of batch().
template <auto... Members>
struct batch_stage : stage_tag {
  using takes_buckets_mark = void;
  static constexpr std::size_t added_columns = sizeof...(Members);
  batch_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = detail::mistake_of_columns<detail::item_for_batch<In>, Members...>();
  template <class In>
  using out = batched<Members...>;
  template <class In>
  using expected_input = typename detail::owner_other_than<detail::item_for_batch<In>, Members...>::type;
};

/// The result of batch<Item>() for a type whose members cannot be listed.
struct unlisted_batch_stage : stage_tag {
  using takes_buckets_mark = void;

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::members_are_not_listed;
};

template <class Item, std::size_t... Index>
constexpr batch_stage<member_at<Item, Index>{}...> batch_of_all(const batch_options& options,
                                                                std::index_sequence<Index...>) {
  return {{}, options};
}

}   // namespace detail

/// Returns the stage that builds batches with these columns. The first dimension of each column is options.size; it is
/// smaller in a short last batch.
template <auto... Members>
constexpr detail::batch_stage<Members...> batch(batch_options options) {
  return {{}, options};
}
/// Returns the stage that builds batches with all members of an aggregate, in the order of their declaration. An Item
/// has one to 16 members and no base class.
template <class Item>
  requires(detail::member_count<Item>() > 0)
constexpr auto batch(batch_options options) {
  return detail::batch_of_all<Item>(options, std::make_index_sequence<detail::member_count<Item>()>{});
}
/// Returns the stage that builds batches with these columns.
template <auto... Members>
constexpr detail::batch_stage<Members...> batch(columns<Members...>, batch_options options) {
  return {{}, options};
}
/// Accepts a type whose members cannot be listed. The compiler reports the error at the '|' of the flow.
template <class Item>
  requires(detail::member_count<Item>() == 0)
constexpr detail::unlisted_batch_stage batch(const batch_options&) {
  return {};
}
/// Rejects batch<...>(256) at compile time. The compile error names the option `size`.
template <auto... Members>
detail::broken_stage batch(detail::diagnose::batch_of_a_number);
template <class Item>
detail::broken_stage batch(detail::diagnose::batch_of_a_number);
/// Rejects the option name batch_size at compile time. The compile error names the option `size`.
template <auto... Members>
detail::broken_stage batch(detail::diagnose::batch_by_another_name);
template <class Item>
detail::broken_stage batch(detail::diagnose::batch_by_another_name);

/// Options of prefetch().
struct prefetch_options {
  std::optional<std::size_t> batches{};   ///< maximum on the host; by default 2 to 4, or up to 16 if batches are small
};

namespace detail {

/// The result of prefetch().
struct prefetch_stage : stage_tag {
  using batch_mark = void;
  prefetch_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

}   // namespace detail

/// Returns the stage that limits the number of batches on the host.
constexpr detail::prefetch_stage prefetch(prefetch_options options) { return {{}, options}; }
/// Rejects prefetch(4) at compile time. The compile error names the option `batches`.
detail::broken_stage prefetch(detail::diagnose::prefetch_of_a_number);

}}   // namespace millrace
