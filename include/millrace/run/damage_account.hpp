// Accounts for the damaged samples of a session that goes on: counts, limits, and what the user is told.
//
//   mr::detail::damage_account account(options.on_damage);
//   account.add(lost.take_new(), counts);       // shards that were lost since the last batch
//   account.add(batch, counts);                 // each delivered batch, in order; throws past a limit
//   account.replaced();  account.masked();      // rows so far
//
// Errors: data_error past a limit; it shows the first five damaged samples. Threads: add() by the trainer; the counters
// by any.
#pragma once

#include <millrace/item/on_damage.hpp>
#include <millrace/measure/event_counts.hpp>
#include <millrace/sync/batch_ring.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts damaged samples of one rank, and ends a run that has too many.
class damage_account {
 public:
  explicit damage_account(damage_options o) : options_(std::move(o)) {}

  /// Adds the next batch in order. Throws data_error if its damaged rows are too many.
  void add(const ready_batch& b, event_counts& counts);
  /// Adds shards that were lost.
  void add(const std::vector<std::exception_ptr>& shards, event_counts& counts);

  /// Returns the rows that are copies of others.
  std::uint64_t replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }
  /// Returns the rows that were filled with zeros.
  std::uint64_t masked() const noexcept { return masked_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t max_shown = 5, share_counts_above = 10;

  void add(const damaged_row& d, event_counts& counts);
  void check(std::uint64_t rows) const;
  [[noreturn]] void throw_too_many(const std::string& limit, const char* option) const;

  const damage_options options_;
  std::uint64_t rows_ = 0, damaged_ = 0, in_a_row_ = 0;
  std::string first_;   // texts of the first errors
  std::atomic<std::uint64_t> replaced_{0}, masked_{0};
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/run/damage_account.ipp>
#endif
