// Lets a run without an index continue after a shard that can be read only in part.
//
//   mr::detail::lost_shards lost(10);                                // at most 10 shards may be lost
//   if (auto end = lost.accept(error)) std::rethrow_exception(end);   // called by a reader; null: the run continues
//   for (const std::exception_ptr& why : lost.take_new()) record(why);  // called by the trainer
//
// This class is used if the number of samples in the shard is unknown. The pass then has fewer samples. If the number
// is known, each unreadable sample of the shard is a damaged sample instead.
// Errors: accept() returns the error that ends the run: an error that is not damage, or the error for too many lost
// shards. Threads: thread-safe. The trainer is the thread that calls next().
#pragma once

#include <millrace/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts the shards that were read only in part.
class lost_shards {
 public:
  explicit lost_shards(std::uint64_t at_most) noexcept : at_most_(at_most) {}

  /// Counts a lost shard. Call this function in the order in which the run delivers the shards. Returns null if the run
  /// continues, otherwise the error that ends the run.
  std::exception_ptr accept(std::exception_ptr why);
  /// Returns the number of lost shards so far.
  std::uint64_t count() const;
  /// Returns the error of a run with too many lost shards. `first` contains the texts of the first errors.
  static data_error too_many(std::uint64_t count, std::uint64_t at_most, const std::string& first);
  /// Returns the errors since the last call.
  std::vector<std::exception_ptr> take_new();

 private:
  static constexpr std::size_t max_shown = 5;

  const std::uint64_t at_most_;
  mutable std::mutex mutex_;
  std::uint64_t count_ = 0;
  std::string first_;
  std::vector<std::exception_ptr> new_;
};

/// Returns whether an error of a source is a sign of damaged data: a data_error or an io_error.
bool is_damage_of_source(const std::exception_ptr& why) noexcept;

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/read/stage/impl/lost_shards.inl>
#endif
