// The columns of a batch whose rows are mixed in pairs. The class adds three columns: the label of the partner (the
// other row of the pair), lambda, and the row_mix (item/column/row_mix.hpp). Lambda is the row's own share of the mix.
//
//   using mixed = mr::detail::mixed_columns<&example::pixels, &example::label, &example::pixels, &example::label>;
//   mixed c;
//   c.fix_shapes(first, 256);
//   c.start_row(base, 4);                      // after row 4 is rendered: marks it as unmixed, with lambda 1
//   c.pair_rows(base, {4, 5}, how, 0.7F);      // after both rows are written: each gets the label of the other
//
// The added columns are stored in the slot, and are copied to the device with the batch.
// Errors: the same as in columns.hpp. Threads: one thread at a time for each pair of rows.
#pragma once

#include <millrace/item/column/columns.hpp>
#include <millrace/item/column/row_mix.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A type whose rows can be mixed: one to three dimensions of u8, f16, bf16 or f32.
template <class T>
concept mixable_rows = column_type<T> && !varying_item<T> && mixable_element<typename column_traits<T>::element> &&
                       column_traits<T>::rank >= 1 && column_traits<T>::rank <= 3;
/// A type that can be the label of mixed rows: a number.
template <class T>
concept mixable_label = tensor_element<T>;

/// The columns that mixing adds to a slot (the memory of a batch). Offsets are in bytes from the first of these
/// columns.
template <mixable_label Label>
struct mixed_part {
  std::size_t lambda_at_bytes = 0, mixes_at_bytes = 0, bytes = 0;

  mixed_part() = default;
  explicit mixed_part(std::size_t rows) noexcept
      : lambda_at_bytes(aligned_column_bytes(rows * sizeof(Label))),
        mixes_at_bytes(lambda_at_bytes + aligned_column_bytes(rows * sizeof(float))),
        bytes(mixes_at_bytes + rows * sizeof(row_mix)) {}

  Label* label_b(std::byte* base) const noexcept { return reinterpret_cast<Label*>(base); }
  float* lambda(std::byte* base) const noexcept { return reinterpret_cast<float*>(base + lambda_at_bytes); }
  row_mix* mixes(std::byte* base) const noexcept { return reinterpret_cast<row_mix*>(base + mixes_at_bytes); }
};

/// The columns of a batch in which rows of the column `Pixels` are mixed. The column `Label` contains the labels of
/// these rows.
template <auto Pixels, auto Label, auto... Members>
class mixed_columns : public columns<Members...> {
  using plain = columns<Members...>;

 public:
  using typename plain::item;
  using pixel = typename column_traits<member_type<Pixels>>::element;
  using label = member_type<Label>;

  /// Two rows of a batch.
  struct pair {
    std::size_t first = 0, second = 0;
  };

  /// Works like columns::fix_shapes().
  void fix_shapes(const item& first, std::size_t rows, bool flags = false) {
    part_ = mixed_part<label>(rows);
    plain::fix_shapes(first, rows, flags, part_.bytes);
  }

  /// These functions return the elements of a row of `Pixels`, and the shape of a row.
  auto pixels(std::byte* base, std::size_t row) const noexcept { return plain::template row<Pixels>(base, row); }
  const auto& pixels_shape() const noexcept { return plain::template row_shape<Pixels>(); }

  /// Marks a rendered row as unmixed.
  void start_row(std::byte* base, std::size_t row) const noexcept {
    label_b(base)[row] = label_a(base, row);
    lambda(base)[row] = 1;
    mixes(base)[row] = {};
  }
  /// Records that two rows are mixed with each other.
  void pair_rows(std::byte* base, const pair& rows, const row_mix& mix, float lambda_of_both) const noexcept {
    const auto enter = [&](std::size_t row, std::size_t partner) {
      label_b(base)[row] = label_a(base, partner);
      lambda(base)[row] = lambda_of_both;
      mixes(base)[row] = mix;
      mixes(base)[row].partner = static_cast<std::int32_t>(partner);
    };
    enter(rows.first, rows.second);
    enter(rows.second, rows.first);
  }
  /// Works like columns::copy_row(). The copy has the labels and the lambda of the original. If the mix is deferred
  /// (mix_rows_options::deferred), the later mix also writes the mixed row to the copy.
  void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept {
    plain::copy_row(base, from, to);
    label_b(base)[to] = label_b(base)[from];
    lambda(base)[to] = lambda(base)[from];
    row_mix* const all = mixes(base);
    all[to] = {};
    all[to].next_copy = std::exchange(all[from].next_copy, static_cast<std::int32_t>(to));
  }
  /// Works like columns::clear_row(). A row of zeros has lambda 1.
  void clear_row(std::byte* base, std::size_t row) const noexcept {
    plain::clear_row(base, row);
    start_row(base, row);
  }

  /// Works like columns::describe().
  std::string describe() const {
    const std::string rows = to_string(std::array{plain::rows()});
    return plain::describe() + ", label_b " + rows + " " + std::string(dtype_name<label>()) + ", lambda " + rows +
           " f32";
  }

 private:
  label label_a(std::byte* base, std::size_t row) const noexcept { return plain::template row<Label>(base, row)[0]; }
  label* label_b(std::byte* base) const noexcept { return part_.label_b(base + plain::more_at_bytes()); }
  float* lambda(std::byte* base) const noexcept { return part_.lambda(base + plain::more_at_bytes()); }
  row_mix* mixes(std::byte* base) const noexcept { return part_.mixes(base + plain::more_at_bytes()); }

  mixed_part<label> part_{};
};

}}}   // namespace millrace::detail
