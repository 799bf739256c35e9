// batch_keys: the keys of the rows in one slot (the memory of a batch in the batch ring).
//
//   mr::detail::batch_keys keys(256);
//   keys.set(row, s.origin.key());            // each worker sets the keys of the rows that it renders
//   std::span(keys.texts(), rows);            // one std::string_view for each row
//
// Each row reuses its buffer for every batch. The buffer grows to the longest key of that row.
// Threads: set() may run on different rows concurrently. Errors: std::bad_alloc.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

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
  /// Returns one text for each row, or null without rows. The texts remain valid after swap().
  const std::string_view* texts() const noexcept { return texts_.empty() ? nullptr : texts_.data(); }
  /// Exchanges the keys with `other`.
  void swap(batch_keys& other) noexcept;

 private:
  std::vector<std::string> keys_;
  std::vector<std::string_view> texts_;   // views of held_
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/item/column/impl/batch_keys.inl>
#endif
