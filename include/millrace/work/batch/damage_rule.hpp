// Decides which errors of samples a run tolerates as damage, and which row replaces a damaged row.
//
//   const mr::detail::damage_rule rule{.policy = mr::damage::replace, .donor_step = 12};
//   if (!rule.accepts(error)) return false;                   // the error of a stage, with its location
//   const auto good = [&](std::size_t row) { return valid[row] != 0; };
//   const std::size_t from = rule.donor_of(17, 256, good);    // the nearest good row in the lane of row 17, or row 17
//
// Two rows of a batch belong to the same lane if their distance is a multiple of `donor_step`. With an index,
// donor_step is session_options::lanes (48 by default) divided by the number of ranks. For example, with 4 ranks, the
// rows 5, 17 and 29 belong to the same lane. Therefore the nearest good row does not depend on the number of ranks.
// Errors: add_early() throws data_error. Threads: objects are immutable; any thread may use them.
#pragma once

#include <millrace/item/on_damage.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The policy of a session for damaged samples. The last segment (the stages that fill batches) applies the policy.
struct damage_rule {
  damage policy = damage::fail;
  std::size_t donor_step = 1;   ///< distance from a row to the next row of its lane, in rows of a batch
  std::uint64_t in_a_row = 0;   ///< maximum number of damaged samples before the first good sample
  std::vector<std::string> stages{};

  /// Returns whether the run continues after damage.
  bool tolerates_damage() const noexcept { return policy != damage::fail; }
  /// Returns whether an error counts as damage. The error must have a location.
  bool accepts(const std::exception_ptr& located) const noexcept;
  /// Counts a damaged sample before the first good sample. Throws data_error if the count exceeds `in_a_row`. Samples
  /// of lost shards do not count: for them, throws data_error only if an epoch has ended without a good sample.
  void add_early(std::uint64_t& count, const std::exception_ptr& located, bool epoch_is_over) const;

  /// Returns the nearest good row of the same lane; if two rows are equally near, returns the earlier row. Returns
  /// `row` if the lane has no good row.
  template <class Good>
  std::size_t donor_of(std::size_t row, std::size_t rows, const Good& good) const {
    for (std::size_t away = donor_step; away <= row || row + away < rows; away += donor_step) {
      if (away <= row && good(row - away)) return row - away;
      if (row + away < rows && good(row + away)) return row + away;
    }
    return row;
  }
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/batch/impl/damage_rule.inl>
#endif
