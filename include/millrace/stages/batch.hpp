// batch: items become rows of a batch, each column named by a member pointer.
//
//   flow | mr::batch<&example::pixels, &example::label>({.size = 256})
//        | mr::prefetch({.batches = 4})
//        | mr::to_device({.device = mr::best_device()})
//
// What may be a column: item/columns.hpp. Rows are written straight into their slot, on the worker that made the item.
// Shapes are those of the run's first sample. prefetch sets how many batches are kept ready or in the making on the
// host (2 to 4 unless chosen, from the batch's size); it is a bound, never exceeded.
#pragma once

#include <millrace/flow/flow.hpp>
#include <millrace/item/columns.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

struct batch_options {
  std::size_t size = 32;   ///< rows in a batch
  bool drop_last = true;   ///< an epoch's last batch, if short: dropped (and never decoded), or delivered short
  bool keys = false;       ///< b.keys() says which sample each row is
  diagnose::option_is_size batch_size{};   ///< says how it is called
};

/// The item of a flow after batch: what comes out is a batch with these columns.
template <auto... Members>
struct batched {
  using batch_mark = void;
};

namespace detail {

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
  else if constexpr (is_std_array<T>) return mistake::column_is_an_array;
  else if constexpr (is_std_vector<T>) return mistake::column_is_a_vector;
  else return mistake::not_a_column;
}

/// The class that the first of the members belongs to that is none of Item.
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
  mistake found = (std::same_as<member_owner<Members>, Item> && ...) ? mistake::none : mistake::column_of_another_type;
  ((found = found == mistake::none ? mistake_of_column<member_type<Members>>() : found), ...);
  return found;
}

}  // namespace detail

template <auto... Members>
struct batch_stage : stage_tag {
  using takes_buckets_mark = void;
  batch_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = detail::mistake_of_columns<detail::item_for_batch<In>, Members...>();
  template <class In>
  using out = batched<Members...>;
  template <class In>
  using wanted_instead_of = typename detail::owner_other_than<detail::item_for_batch<In>, Members...>::type;
};

template <auto... Members>
constexpr batch_stage<Members...> batch(batch_options options) {
  return {{}, options};
}
/// What batch<...>(256) is told.
template <auto... Members>
broken_stage batch(diagnose::batch_of_a_number);

struct prefetch_options {
  std::size_t batches = 0;   ///< ready or in the making on the host; 0 chooses 2 to 4 from the size of a batch
};

/// Made by prefetch().
struct prefetch_stage : stage_tag {
  using batch_mark = void;
  prefetch_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
};

constexpr prefetch_stage prefetch(prefetch_options options) { return {{}, options}; }
/// What prefetch(4) is told.
broken_stage prefetch(diagnose::prefetch_of_a_number);

}}  // namespace millrace
