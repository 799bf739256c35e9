// A delivered batch whose rows were mixed: beside its columns, both labels of each row, lambda, and how it was mixed.
//
//   for (auto& b : run) {
//     auto [pixels, label_a, label_b, lambda] = b.columns();          // or b.label_a(), b.label_b(), b.lambda()
//     train_step(pixels, label_a, label_b, lambda, b.stream());
//   }
//
// The views lie where the columns lie, on the host or on a device.
// Errors, threads and lifetime: as batch_of (deliver/batch.hpp).
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/device/row_grid.hpp>
#include <millrace/item/column/mixed_columns.hpp>
#include <millrace/stages/mix_rows.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A leased batch in which rows of `Pixels` are mixed, and have labels in `Label`.
template <auto Pixels, auto Label, auto... Members>
class mixed_batch : public batch_of<Members...> {
  using plain = batch_of<Members...>;

 public:
  using layout = mixed_columns<Pixels, Label, Members...>;

  mixed_batch() = default;
  /// Called by the session.
  mixed_batch(const layout& where, batch_lease&& lease) noexcept : plain(where, std::move(lease)), mixed_(where) {}
  mixed_batch(mixed_batch&& other) noexcept = default;
  mixed_batch& operator=(mixed_batch&& other) noexcept = default;
  mixed_batch(const mixed_batch&) = delete;
  /// Exists for its message: the compiler shows it for `for (auto b : run)`.
  template <std::same_as<mixed_batch> SameBatch>
  __attribute__((unavailable("millrace: a batch cannot be copied: it is a lease on memory. Write for (auto& b : run), "
                             "or std::move it.")))
  mixed_batch(SameBatch&);

  /// Returns the labels of the rows, [size()]: the same as get<Label>().
  auto label_a() const { return plain::template get<Label>(); }
  /// Returns the labels of the rows that they are mixed with, [size()]. A row that stays as it is has its own.
  auto label_b() const { return mixed_.label_b_view(plain::where("label_b()")); }
  /// Returns the weights of label_a, f32 [size()]; label_b weighs the rest. A row that stays as it is has 1.
  tensor_view<float, 1> lambda() const { return mixed_.lambda_view(plain::where("lambda()")); }
  /// Returns both labels and their weights, for mr::dense_labels().
  auto mixed_labels() const {
    return millrace::mixed_labels<typename layout::label>{.label_a = label_a(), .label_b = label_b(),
                                                          .lambda = lambda()};
  }
  /// Returns how each row is mixed, [size()], for mr::mix_rows() of further columns or of deferred ones.
  tensor_view<const row_mix, 1> row_mixes() const { return mixed_.mixes_view(plain::where("row_mixes()")); }
  /// Returns the views of all columns as a tuple: those of batch<...> in its order, then label_b and lambda.
  auto columns() const { return std::tuple_cat(plain::columns(), std::tuple(label_b(), lambda())); }

 private:
  layout mixed_{};
};

template <auto Pixels, auto Label, auto... Members>
struct columns_of<mixed_batched<Pixels, Label, Members...>> {
  using type = mixed_columns<Pixels, Label, Members...>;
  using batch = mixed_batch<Pixels, Label, Members...>;
};

}}}  // namespace millrace::detail
