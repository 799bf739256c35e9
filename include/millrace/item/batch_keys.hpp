// The keys of a batch's rows. They belong to its slot: room for a row's key is had once, and grows to the longest one.
//
//   batch_keys keys(256);
//   keys.set(row, s.origin.key());            // workers, each its own rows
//   std::span(keys.texts(), rows);            // one std::string_view for each row
//
// Threads: set() of different rows at the same time. Errors: std::bad_alloc.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class batch_keys {
 public:
  /// Of no rows: nobody asked for keys.
  batch_keys() = default;
  explicit batch_keys(std::size_t rows) : held_(rows), texts_(rows) {}

  void set(std::size_t row, std::string_view key) {
    held_[row].assign(key);
    texts_[row] = held_[row];
  }
  /// Null where there are none. Keys that change hands with swap() stay where they lie.
  const std::string_view* texts() const noexcept { return texts_.empty() ? nullptr : texts_.data(); }
  void swap(batch_keys& other) noexcept {
    held_.swap(other.held_);
    texts_.swap(other.texts_);
  }

 private:
  std::vector<std::string> held_;
  std::vector<std::string_view> texts_;   // of them
};

}}  // namespace millrace
