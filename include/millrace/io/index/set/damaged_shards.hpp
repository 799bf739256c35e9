// Counts the shards that are already damaged at the start of a run, and limits their number.
//
//   mr::detail::damaged_shards damaged(o.damaged_shards_at_most);
//   if (!damaged.allow({.shard = name, .samples = 40, .is_complete = true})) damaged.throw_if_allowed(name);
//   damaged.notices(147);               // a notice such as "2 of 147 shards are damaged: ..."
//
// Errors: data_error of throw_if_allowed(). Threads: one thread at a time.
#pragma once

#include <millrace/base/notice.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts damaged shards, and stores the description of the first one.
class damaged_shards {
 public:
  struct damaged_shard {
    const std::string& shard;
    std::size_t samples;   // number of samples in its index
    bool is_complete;      // true if the index was built before the damage, and therefore lists all samples
  };

  explicit damaged_shards(std::size_t at_most) noexcept : at_most_(at_most) {}

  /// Counts a damaged shard. Returns false if there are now more damaged shards than allowed.
  MILLRACE_RARE bool allow(const damaged_shard& entry) {
    if (++count_ > at_most_) return false;
    if (count_ == 1) {
      first_shard_ = entry.shard;
      first_ = printable(entry.shard) + " delivers " + (entry.is_complete ? "all its " : "only its first ") +
               std::to_string(entry.samples) + " samples" +
               (entry.is_complete ? " except unreadable ones, which count as damaged"
                                  : ", because it has no index from before the damage");
    }
    return true;
  }
  /// Throws the error for too many damaged shards. If the limit is 0, does nothing, because the caller throws the error
  /// of the damage.
  MILLRACE_RARE void throw_if_allowed(const std::string& shard) const {
    if (at_most_ == 0) return;
    throw data_error("too many shards are damaged: got " + std::to_string(count_) + ", expected at most " +
                         std::to_string(at_most_) + "; " + first_,
                     "Copy the shards again, or raise shards_options::damaged_shards_at_most",
                     {.stage = "index", .shard = shard});
  }
  /// Returns the notice about the damaged shards. Returns nothing if no shard is damaged.
  MILLRACE_RARE std::vector<notice> notices(std::size_t shards) const {
    if (count_ == 0) return {};
    return {{.kind = notice_kind::lost_shard,
             .severity = notice_severity::loss,
             .text = std::to_string(count_) + " of " + std::to_string(shards) + " shards are damaged: " + first_ +
                     (count_ > 1 ? ", ..." : ""),
             .where = {.stage = "index", .shard = first_shard_}}};
  }

 private:
  std::size_t at_most_, count_ = 0;
  std::string first_{}, first_shard_{};
};

}}}   // namespace millrace::detail
