// Several indexed data sets that are read together: the common base class of mixes and joins.
//
//   const mr::detail::shard_sets& sets = joined;    // a joined_data or a mixed_data
//   std::uint64_t choice = sets.choice();            // checksum of the samples chosen in all sets
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/item/owner.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The base class of mixed_data and joined_data.
class shard_sets {
 public:
  /// Adds the number of shards without an end marker, over all sets, to `counts`.
  void report(event_counts& counts) const noexcept {
    for (const auto& set : sets_) set->report(counts);
  }
  /// Adds to `counts` the events that occurred during reads of any set since the last call (shared_reads::report()).
  void report_reads(event_counts& counts) const noexcept { shared_->report(counts); }
  /// Returns a checksum of the chosen samples of all sets, or 0 if every set uses each of its samples once.
  std::uint64_t choice() const noexcept {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < sets_.size(); ++i)
      if (sets_[i]->choice() != 0) all = combine_keys(combine_keys(all, i), sets_[i]->choice()) | 1;
    return all;
  }
  /// Returns the startup notices of all sets (shard_data::notices()).
  std::vector<notice> notices() const {
    std::vector<notice> all;
    for (const auto& set : sets_)
      for (notice& one : set->notices()) all.push_back(std::move(one));
    return all;
  }
  /// Returns the meter of the sample reads of all sets.
  read_meter& reads() const noexcept { return reads_; }

 protected:
  /// All sets together keep up to 512 files open between reads. They also share a block pool (item/bytes.hpp).
  explicit shard_sets(std::vector<std::shared_ptr<shard_data>> sets) : sets_(std::move(sets)) {
    for (const auto& set : sets_) set->share(shared_);
  }
  ~shard_sets() = default;

  const std::vector<std::shared_ptr<shard_data>> sets_;
  const std::shared_ptr<shared_reads> shared_ = make_shared_object<shared_reads>(512);
  mutable read_meter reads_{};
};

}}}   // namespace millrace::detail
