// The contents of a slot (the memory of a batch) that are not columns: the extent of its columns, and its keys.
//
//   mr::detail::slot_extent e = layout.close(base, rows);     // pads ragged rows and removes gaps
//   backend.copy_to_device(to, base, e.used_bytes);
//
//   mr::detail::batch_keys keys(256);
//   keys.set(row, s.origin.key());            // each worker sets the keys of the rows that it renders
//   std::span(keys.texts(), rows);            // one std::string_view for each row
//
// The values of a slot_extent are known only after the last row is written. Each row of a slot has one buffer for its
// key, which later batches reuse. The buffer grows to the longest key of that row.
// Threads: set() may run on different rows concurrently; a slot_extent is not synchronized. Errors: std::bad_alloc.
#pragma once

#include <millrace/base/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The used bytes of a slot, the padded lengths of its ragged columns, and its rows without a sample.
struct slot_extent {
  static constexpr std::size_t max_ragged = 8;   ///< maximum number of ragged columns in a batch

  /// The padded row length of each ragged column, in the order of batch<...>. If the rows of a column vary in height
  /// and width, the number is height * 65536 + width. If the rows are lists, the number is the total of the items in
  /// all rows.
  std::array<std::uint32_t, max_ragged> padded_to{};
  std::size_t used_bytes = ~std::size_t{0};   ///< bytes from the front of the slot; all bytes by default
  std::size_t padding_rows = 0;               ///< masked rows after the rows of samples
};

/// The keys of the rows in one slot.
class batch_keys {
 public:
  /// Creates an object without rows, for a flow without keys.
  batch_keys() = default;
  /// Creates empty keys for `rows` rows.
  explicit batch_keys(std::size_t rows);

  /// Sets the key of one row.
  void set(std::size_t row, std::string_view key) {
    keys_[row].assign(key);
    texts_[row] = keys_[row];
  }
  /// Copies the key of row `from` to row `to`.
  void copy(std::size_t from, std::size_t to);
  /// Returns one text for each row, or null without rows. After swap(), the returned pointer remains valid, and points
  /// to the same texts, which then belong to the other object.
  const std::string_view* texts() const noexcept { return texts_.empty() ? nullptr : texts_.data(); }
  /// Exchanges the keys with `other`.
  void swap(batch_keys& other) noexcept;

 private:
  std::vector<std::string> keys_;
  std::vector<std::string_view> texts_;   // views of keys_
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/item/column/impl/slot_contents.inl>
#endif
