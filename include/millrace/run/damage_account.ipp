// Defines what damage_account.hpp declares.
#pragma once

#include <millrace/run/damage_account.hpp>

#include <millrace/base/error.hpp>

#include <cstdio>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void damage_account::add(const ready_batch& b, event_counts& counts) {
  std::size_t next = 0;   // the row behind the last damaged one
  for (const damaged_row& d : b.damaged) {
    if (d.row > next) in_a_row_ = 0;
    next = d.row + 1;
    add(d, counts);
    check(rows_ + next);
  }
  if (b.rows > next) in_a_row_ = 0;
  rows_ += b.rows;
}

MILLRACE_INLINE void damage_account::add(const std::vector<std::exception_ptr>& shards, event_counts& counts) {
  for (const std::exception_ptr& why : shards) {
    counts.count("shards lost to damage");
    try {
      std::rethrow_exception(why);
    } catch (const error& e) {
      counts.tell("a shard is lost from here on, and the run goes on without the rest of it: " + std::string(e.what()));
    }
  }
}

MILLRACE_INLINE void damage_account::add(const damaged_row& d, event_counts& counts) {
  ++damaged_;
  ++in_a_row_;
  (d.replaced ? replaced_ : masked_).fetch_add(1, std::memory_order_relaxed);
  counts.count(d.replaced ? "damaged samples replaced" : "damaged samples masked");
  try {
    std::rethrow_exception(d.error);
  } catch (const error& e) {
    if (damaged_ <= max_shown) first_ += std::string("\n  ") + e.what();
    counts.tell(std::string("a damaged sample was ") + (d.replaced ? "replaced by a copy of another" : "masked") +
                ", and further ones are counted: " + e.what());
  }
}

MILLRACE_INLINE void damage_account::check(std::uint64_t rows) const {
  if (damaged_ > options_.at_most) throw_too_many("at most " + std::to_string(options_.at_most), "at_most");
  if (in_a_row_ > options_.in_a_row)
    throw_too_many("at most " + std::to_string(options_.in_a_row) + " in a row", "in_a_row");
  if (damaged_ <= share_counts_above) return;
  if (static_cast<double>(damaged_) <= options_.at_most_share * static_cast<double>(rows)) return;
  char limit[80];
  std::snprintf(limit, sizeof limit, "at most %.3g %% of %llu rows", 100 * options_.at_most_share,
                static_cast<unsigned long long>(rows));
  throw_too_many(limit, "at_most_share");
}

MILLRACE_INLINE void damage_account::throw_too_many(const std::string& limit, const char* option) const {
  throw data_error("too many samples are damaged: got " + std::to_string(damaged_) + " in this session, expected " +
                       limit + "; the first of them:" + first_,
                   std::string("Look at the data, or raise damage_options::") + option);
}

}}}  // namespace millrace::detail
