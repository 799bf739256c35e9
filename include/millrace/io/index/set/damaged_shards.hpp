// The shards that were found damaged at a start, and how many of them are allowed.
//
//   mr::detail::damaged_shards damaged(o.damaged_shards_at_most);
//   if (!damaged.allow({.shard = name, .samples = 40, .knows_all = true})) damaged.throw_if_allowed(name);
//   damaged.notices(147);               // "2 of 147 shards are damaged: ..."; nothing without any
//
// Errors: data_error of throw_if_allowed(). Threads: one at a time. Lifetime: a value.
#pragma once

#include <millrace/base/notice.hpp>
#include <millrace/base/text.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts damaged shards, and remembers the first.
class damaged_shards {
 public:
  struct found {
    const std::string& shard;
    std::size_t samples;   // of its index
    bool knows_all;        // the index is from before the damage
  };

  explicit damaged_shards(std::size_t at_most) noexcept : at_most_(at_most) {}

  /// Notes a damaged shard. Returns whether so many are allowed.
  bool allow(const found& one) {
    if (++count_ > at_most_) return false;
    if (count_ == 1) {
      first_shard_ = one.shard;
      first_ = printable(one.shard) + " has " + (one.knows_all ? "all its " : "only the first ") +
               std::to_string(one.samples) + " samples in the order" +
               (one.knows_all ? ", and those that cannot be read are damaged"
                              : "; an older index would know the rest");
    }
    return true;
  }
  /// Throws the error of one too many, if any are allowed.
  void throw_if_allowed(const std::string& shard) const {
    if (at_most_ == 0) return;
    throw data_error("too many shards are damaged: got " + std::to_string(count_) + ", expected at most " +
                         std::to_string(at_most_) + "; " + first_,
                     "Copy the shards again, or raise shards_options::damaged_shards_at_most",
                     {.stage = "index", .shard = shard});
  }
  /// Returns the notice about them; none without any.
  std::vector<notice> notices(std::size_t shards) const {
    if (count_ == 0) return {};
    return {{.kind = notice_kind::lost_shard, .severity = notice_severity::loss,
             .text = std::to_string(count_) + " of " + std::to_string(shards) + " shards are damaged: " + first_ +
                     (count_ > 1 ? ", ..." : ""),
             .where = {.stage = "index", .shard = first_shard_}}};
  }

 private:
  std::size_t at_most_, count_ = 0;
  std::string first_{}, first_shard_{};
};

}}}  // namespace millrace::detail
