// Counts the damaged samples of a session, checks the limits on damage, and posts notices.
//
//   mr::detail::damage_account account(options.on_damage, *options.world);   // opens the quarantine list
//   account.add(lost.take_new(), counts);       // shards that were lost since the last batch
//   account.add(batch, origin, counts);         // each delivered batch, in order; throws if damage exceeds a limit
//   account.replaced();  account.masked();      // rows so far
//
// A shard is lost if it cannot be opened, or ends before its last sample. If the number of its samples is known, for
// example from an index, the missing samples become damaged rows; otherwise the pass omits the missing samples. Each
// lost shard counts once, for the limit on lost shards. Its damaged rows do not count for the limits on damaged
// samples.
// Errors: data_error when a limit is exceeded. The message shows the first five damaged samples or lost shards. Also
// the errors of quarantine_list.
// Threads: the trainer (the thread that calls next()) calls add(); any thread may read the counters.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/column/batch_origin.hpp>
#include <millrace/item/on_damage.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/item/world.hpp>
#include <millrace/sync/batch_ring.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

class quarantine_list;

namespace detail {

/// Counts damaged samples of one rank, and ends a run that has too many damaged samples.
class damage_account {
 public:
  damage_account(damage_options o, const world& mine);
  ~damage_account();

  /// Adds the next delivered batch. Throws data_error if the damage exceeds a limit.
  void add(const ready_batch& b, const batch_origin& origin, event_counts& counts);
  /// Adds lost shards whose missing samples the pass omits. Such shards cause no damaged rows.
  void add(const std::vector<std::exception_ptr>& shards, event_counts& counts);

  /// Returns the number of damaged rows that were replaced with copies of other rows.
  std::uint64_t replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }
  /// Returns the number of damaged rows that were filled with zeros.
  std::uint64_t masked() const noexcept { return masked_.load(std::memory_order_relaxed); }
  /// Returns the number of lost shards that caused damaged rows.
  std::uint64_t lost_shards() const noexcept { return lost_shards_.load(std::memory_order_relaxed); }
  /// Returns a notice with the session's totals, or nothing if the earlier notices already named all damage.
  std::optional<notice> summary() const;

 private:
  static constexpr unsigned max_posted = 10;   // maximum number of lost shards that are reported one by one
  static constexpr std::uint64_t max_shown = 5, share_counts_above = 10;

  /// Counts a damaged row.
  void count(const damaged_row& d, event_counts& counts);
  void count_as_lost(const lost_shard_error& e, event_counts& counts);
  void post_lost(const char* text, const error& e, event_counts& counts);
  void list(const damaged_row& d, std::uint64_t epoch, std::uint64_t position);
  void check(std::uint64_t rows) const;
  [[noreturn]] void throw_too_many(const std::string& limit, const char* option) const;

  const damage_options options_;
  const world world_;
  const owner<quarantine_list> quarantine_;   // null if no list is written
  std::uint64_t rows_ = 0, damaged_ = 0, in_a_row_ = 0, lost_shards_posted_ = 0;
  std::string first_, first_lost_;   // texts of the first errors of samples, and of lost shards
  std::set<std::string> lost_;       // names of the lost shards that caused damaged rows
  std::atomic<std::uint64_t> replaced_{0}, masked_{0}, lost_shards_{0};
};

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/run/impl/damage_account.inl>
#endif
