// A delivered batch: typed views of the columns, and the lease on their memory (the user's ownership until release()).
//
//   for (auto& [pixels, labels] : run) train_step(pixels, labels);
//   for (auto& b : run) train_step(b.get<&example::pixels>(), b.get<&example::label>(), b.stream());
//
// A batch is move-only. Its destructor releases the slot (the batch's memory). The slot is reused after the stream of
// to_device and the streams passed to also_used_on() have completed their work on the batch. A batch that was moved out
// of the loop stays valid until its destruction. Any thread may destroy a batch, even after the end of its session.
// Errors: members that access the batch throw setup_error after the batch was released or moved from. Errors of the
// device are reported as io_error.
// Threads: only one thread at a time may use a batch. Lifetime: views and keys are valid until release().
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/deliver/batch_lease.hpp>
#include <millrace/flow/diagnose.hpp>
#include <millrace/item/column/columns.hpp>
#include <millrace/stages/batch.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

template <class Batch>
class batch_engine;

}   // namespace detail

/// A leased batch with one column for each of `Members`. The class is tuple-like, so that structured bindings use
/// get<Index>().
template <auto... Members>
class batch_of : public batch_lease {
 public:
  static constexpr std::size_t column_count = sizeof...(Members);

  batch_of() = default;
  batch_of(batch_of&& other) noexcept = default;
  batch_of& operator=(batch_of&& other) noexcept = default;
  batch_of(const batch_of&) = delete;
  // clang-format off
  /// Declared only so that the compiler shows this error message for `for (auto b : run)`.
  template <std::same_as<batch_of> SameBatch>
  __attribute__((unavailable("millrace: a batch cannot be copied: it is a lease on memory. Write for (auto& b : run), "
                             "or std::move it.")))
  batch_of(SameBatch&);
  // clang-format on

  /// Returns a column as a view [size(), ...]. `M` is a member of the example, or the index of a column, from 0. The
  /// view of a ragged column contains values and lengths (item/tensor/tensor_view.hpp).
  template <auto M>
    requires(detail::index_of_member<M, Members...>() < sizeof...(Members))
  auto get() const {
    return view<detail::index_of_member<M, Members...>()>(where("get()"));
  }
  // clang-format off
  /// Declared only so that the compiler shows this error message for a column that the batch does not have.
  template <auto M>
    requires(detail::index_of_member<M, Members...>() == sizeof...(Members))
  __attribute__((unavailable("millrace: get<...> names a column that batch<...> does not list. Add it to batch<...>.")))
  detail::broken_batch get() const;
  // clang-format on
  /// Returns the views of all columns, as a tuple in the order of batch<...>.
  auto columns() const {
    return [this]<std::size_t... Index>(std::index_sequence<Index...>) {
      const auto here = where("columns()");
      return std::tuple(view<Index>(here)...);
    }(std::make_index_sequence<sizeof...(Members)>{});
  }

  /// Returns a flag for each row, u8 [size()]: 1 if the row contains a sample or a copy of a sample, 0 if the row is
  /// masked. Throws setup_error if neither session_options::on_damage nor batch({.pad_last = true}) is set.
  tensor_view<const std::uint8_t, 1> valid() const { return flags(places::row_flags::valid); }
  /// Returns a flag for each row, u8 [size()]: 1 if the row is a copy of another row because its own sample is damaged.
  /// Throws setup_error in the same cases as valid().
  tensor_view<const std::uint8_t, 1> replaced() const { return flags(places::row_flags::replaced); }

  /// Returns whether the batch has the flags that valid() and replaced() return.
  bool has_flags() const { return places_.flags_view(places::row_flags::valid, where("has_flags()")).has_value(); }

  /// Copies a view of this batch to host memory and returns the copy. The batch may be on any device. Use this function
  /// only for inspection, because the call blocks until the batch's stream has completed all work queued so far.
  template <class T, std::size_t N>
  tensor<std::remove_const_t<T>, N> to_host(const tensor_view<T, N>& view) const {
    this->checked("to_host()");
    tensor<std::remove_const_t<T>, N> copy(view.shape);
    if (view.memory == memory_kind::host) std::copy_n(view.data, view.size(), copy.data());
    else output().backend().copy_to_host(copy.data(), view.data, view.size_bytes(), stream());
    return copy;
  }

 protected:
  template <class>
  friend class detail::batch_engine;
  friend struct detail::batch_maker;
  using places = detail::column_places<detail::member_type<Members>...>;

  batch_of(const places& where, batch_lease&& lease) noexcept : batch_lease(std::move(lease)), places_(where) {}
  typename places::delivered where(const char* call) const {
    this->checked(call);
    return {.base = meta().data, .rows = size(), .extent = meta().extent, .memory = output().backend().memory()};
  }
  const places& column_places_of_batch() const noexcept { return places_; }

 private:
  template <std::size_t Index>
  auto view(const typename places::delivered& b) const {
    constexpr std::array names{detail::member_spelling<Members>.data()...};
    return places_.template view<Index>(b, names[Index]);
  }
  tensor_view<const std::uint8_t, 1> flags(typename places::row_flags which) const {
    const auto view = places_.flags_view(which, where("valid()"));
    if (!view) throw_no_flags();
    return *view;
  }

  places places_{};
};

namespace detail {

/// The batch type of a session with these columns.
template <auto... Columns>
struct batch_type {
  using type = batch_of<Columns...>;
};

template <class Item>
struct columns_of;
template <auto... Members>
struct columns_of<batched<Members...>> {
  using type = columns<Members...>;
  using list = column_list<Members...>;
};

}   // namespace detail

}}   // namespace millrace

template <auto... Members>
struct std::tuple_size<millrace::batch_of<Members...>> : std::integral_constant<std::size_t, sizeof...(Members)> {};
template <std::size_t Index, auto... Members>
struct std::tuple_element<Index, millrace::batch_of<Members...>> {
  using type = decltype(std::declval<const millrace::batch_of<Members...>&>().template get<Index>());
};
