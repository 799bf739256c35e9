// Defines a delivered batch with mixed rows: its columns, both labels of each row, lambda, and the parameters of the
// mix.
//
//   for (auto& b : run) {
//     auto [pixels, label_a, label_b, lambda] = b.columns();          // or b.label_a(), b.label_b(), b.lambda()
//     train_step(pixels, label_a, label_b, lambda, b.stream());
//   }
//
// The type of the session is session<&example::pixels, &example::label, label_b<&example::label>, lambda>. label_b,
// lambda and the row mixes are in the same memory as the other columns: on the host or on a device. Errors, threads and
// lifetime: as for batch_of (deliver/batch.hpp).
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/deliver/batch.hpp>
#include <millrace/device/row_grid.hpp>
#include <millrace/item/column/mixed_columns.hpp>
#include <millrace/stages/mix_rows.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// A delivered batch whose rows are mixed. The column `Label` contains the labels.
template <auto Label, auto... Members>
class mixed_batch : public batch_of<Members...> {
  using plain = batch_of<Members...>;
  using label = detail::member_type<Label>;

 public:
  static constexpr std::size_t column_count = plain::column_count + 2;

  mixed_batch() = default;
  mixed_batch(mixed_batch&& other) noexcept = default;
  mixed_batch& operator=(mixed_batch&& other) noexcept = default;
  mixed_batch(const mixed_batch&) = delete;
  // clang-format off
  /// Declared only so that the compiler shows this error message for `for (auto b : run)`.
  template <std::same_as<mixed_batch> SameBatch>
  __attribute__((unavailable("millrace: a batch cannot be copied: it is a lease on memory. Write for (auto& b : run), "
                             "or std::move it.")))
  mixed_batch(SameBatch&);
  // clang-format on

  /// Returns the labels of the rows, [size()]. This is the same view as get<Label>().
  auto label_a() const { return plain::template get<Label>(); }
  /// Returns a column. `M` is a member of the example, or the index of a column, from 0. The last two columns are
  /// label_b() and lambda().
  template <auto M>
  auto get() const {
    if constexpr (!std::integral<decltype(M)>) return plain::template get<M>();
    else if constexpr (M == plain::column_count) return label_b();
    else if constexpr (M == plain::column_count + 1) return lambda();
    else return plain::template get<M>();
  }

  /// Returns the labels of the partner rows, [size()]. If a row is not mixed, its element is the label of the row
  /// itself.
  tensor_view<label, 1> label_b() const { return part(&detail::mixed_part<label>::label_b, "label_b()"); }
  /// Returns the weights of label_a, f32 [size()]. The weight of label_b is 1 minus the weight of label_a. A row that
  /// is not mixed has weight 1.
  tensor_view<float, 1> lambda() const { return part(&detail::mixed_part<label>::lambda, "lambda()"); }
  /// Returns both labels and their weights, for mr::dense_labels().
  auto mixed_labels() const {
    return millrace::mixed_labels<label>{.label_a = label_a(), .label_b = label_b(), .lambda = lambda()};
  }
  /// Returns the row_mix of each row, [size()]. Pass the view to mr::mix_rows() to mix other columns.
  tensor_view<const row_mix, 1> row_mixes() const { return part(&detail::mixed_part<label>::mixes, "row_mixes()"); }
  /// Returns the views of all columns as a tuple: the columns of batch<...> in that order, then label_b and lambda.
  auto columns() const { return std::tuple_cat(plain::columns(), std::tuple(label_b(), lambda())); }

 private:
  template <class>
  friend class detail::batch_engine;
  mixed_batch(const typename plain::places& where, batch_lease&& lease) noexcept
      : plain(where, std::move(lease)), part_(where.rows()) {}

  /// Returns the view of label_b, lambda or the row mixes. `name` appears in messages.
  template <class T>
  tensor_view<T, 1> part(T* (detail::mixed_part<label>::*begin)(std::byte*) const noexcept, const char* name) const {
    const auto b = plain::where(name);
    return {.data = (part_.*begin)(b.base + plain::column_places_of_batch().more_at_bytes()),
            .shape = {b.rows},
            .memory = b.memory,
            .name = name};
  }

  detail::mixed_part<label> part_{};
};

namespace detail {

/// True if a column is label_b<...>.
template <class Column>
inline constexpr bool is_label_b = false;
template <auto Label>
inline constexpr bool is_label_b<label_b_column<Label>> = true;

/// Selects mixed_batch as the batch type if the last two columns are label_b<Label> and lambda.
template <auto... Columns>
  requires(sizeof...(Columns) > 2 && (is_label_b<std::remove_const_t<decltype(Columns)>> || ...))
struct batch_type<Columns...> {
  template <std::size_t... Index, auto Label>
  static auto of(std::index_sequence<Index...>, label_b_column<Label>)
      -> mixed_batch<Label, std::get<Index>(std::tuple(Columns...))...>;

  using type = decltype(of(std::make_index_sequence<sizeof...(Columns) - 2>{},
                           std::get<sizeof...(Columns) - 2>(std::tuple(Columns...))));
};

template <auto Pixels, auto Label, auto... Members>
struct columns_of<mixed_batched<Pixels, Label, Members...>> {
  using type = mixed_columns<Pixels, Label, Members...>;
  using list = column_list<Members..., label_b<Label>, lambda>;
};

}   // namespace detail

}}   // namespace millrace

template <auto Label, auto... Members>
struct std::tuple_size<millrace::mixed_batch<Label, Members...>>
    : std::integral_constant<std::size_t, sizeof...(Members) + 2> {};
template <std::size_t Index, auto Label, auto... Members>
struct std::tuple_element<Index, millrace::mixed_batch<Label, Members...>> {
  using type = decltype(std::declval<const millrace::mixed_batch<Label, Members...>&>().template get<Index>());
};
