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

namespace millrace::inline MILLRACE_ABI {

struct batch_options {
  std::size_t size = 32;   ///< rows in a batch
  bool drop_last = true;   ///< an epoch's last batch, if short: dropped (and never decoded), or delivered short
};

/// The item of a flow after batch: what comes out is a batch with these columns.
template <auto... Members>
struct batched {
  using batch_mark = void;
};

template <auto... Members>
struct batch_stage : stage_tag {
  batch_options options{};

  template <class In>
  static constexpr bool fits = (std::same_as<detail::member_owner<Members>, In> && ...);
  template <class In>
  using out = batched<Members...>;

  template <class In>
  static constexpr void explain() {
    using namespace diagnose;
    report<column_of_another_type<column_of<typename columns<Members...>::item>, arrives<In>>>();
  }
};

namespace detail {

template <class T>
constexpr void explain_column() {
  if constexpr (!column_type<T>) diagnose::report<diagnose::not_a_column<T>>();
}

}  // namespace detail

template <auto... Members>
constexpr auto batch(batch_options options) {
  static_assert(sizeof...(Members) > 0,
                "millrace: batch<...> needs at least one column, such as batch<&example::label>");
  if constexpr ((column_type<detail::member_type<Members>> && ...)) {
    return batch_stage<Members...>{{}, options};
  } else {
    (detail::explain_column<detail::member_type<Members>>(), ...);
    return broken_stage{};
  }
}

struct prefetch_options {
  std::size_t batches = 0;   ///< ready or in the making on the host; 0 chooses 2 to 4 from the size of a batch
};

/// Made by prefetch().
struct prefetch_stage : stage_tag {
  using batch_mark = void;
  prefetch_options options{};

  template <class In>
  static constexpr bool fits = detail::ends_in_batch<In>;
  template <class In>
  using out = In;
  template <class In>
  static constexpr void explain() {
    diagnose::report<diagnose::needs_batch_first<diagnose::arrives<In>, diagnose::in_stage<prefetch_stage>>>();
  }
};

constexpr prefetch_stage prefetch(prefetch_options options) { return {{}, options}; }

}  // namespace millrace::inline MILLRACE_ABI
