// Definitions for damage_account.hpp.
#pragma once

#include <millrace/run/damage_account.hpp>

#include <millrace/read/stage/lost_shards.hpp>
#include <millrace/run/quarantine_list.hpp>

#include <cstdio>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE damage_account::damage_account(damage_options o, const world& mine)
    : options_(std::move(o)),
      world_(mine),
      quarantine_(options_.quarantine.empty() || options_.policy == damage::fail
                      ? nullptr
                      : make_owner<quarantine_list>(options_.quarantine + "-" + std::to_string(mine.rank) + ".jsonl")) {
}

MILLRACE_RARE damage_account::~damage_account() = default;

MILLRACE_RARE void damage_account::add(const ready_batch& b, const batch_origin& origin, event_counts& counts) {
  std::size_t next = 0;   // the row after the last damaged row
  for (const damaged_row& d : b.damaged) {
    if (d.row > next) in_a_row_ = 0;
    next = d.row + 1;
    count(d, counts);
    if (quarantine_) {
      const bool has_position = origin.first_position != error_location::unknown;
      list(d, b.epoch,
           has_position ? origin.first_position + d.row * world_.size + world_.rank : error_location::unknown);
    }
    check(rows_ + next);
  }
  if (b.rows > next) in_a_row_ = 0;
  rows_ += b.rows;
}

MILLRACE_RARE void damage_account::add(const std::vector<std::exception_ptr>& shards, event_counts& counts) {
  for (const std::exception_ptr& why : shards) {
    counts.count("shards lost to damage");
    try {
      std::rethrow_exception(why);
    } catch (const error& e) {
      if (quarantine_) quarantine_->add({.shard = e.where().shard, .stage = e.where().stage, .reason = e.message()});
      post_lost("a shard is damaged, and the run continues without the rest of it: ", e, counts);
    }
  }
}

MILLRACE_RARE void damage_account::list(const damaged_row& d, std::uint64_t epoch, std::uint64_t position) {
  try {
    std::rethrow_exception(d.error);
  } catch (const error& e) {
    const error_location& at = e.where();
    quarantine_->add({.shard = at.shard,
                      .key = at.key,
                      .offset_bytes = at.offset_bytes,
                      .position = position,
                      .epoch = epoch,
                      .stage = at.stage,
                      .reason = e.message()});
  }
}

MILLRACE_RARE void damage_account::count(const damaged_row& d, event_counts& counts) {
  (d.replaced ? replaced_ : masked_).fetch_add(1, std::memory_order_relaxed);
  counts.count(d.replaced ? "damaged samples replaced" : "damaged samples masked");
  try {
    std::rethrow_exception(d.error);
  } catch (const lost_shard_error& e) {
    count_as_lost(e, counts);
  } catch (const error& e) {
    ++damaged_;
    ++in_a_row_;
    if (damaged_ <= max_shown) first_ += std::string("\n  ") + e.what();
    counts.post({.kind = notice_kind::damaged_sample,
                 .severity = notice_severity::loss,
                 .text = std::string("a damaged sample was ") +
                         (d.replaced ? "replaced by a copy of another" : "masked") +
                         " (further damaged samples are only counted): " + e.what(),
                 .where = e.where()});
  }
}

MILLRACE_RARE void damage_account::count_as_lost(const lost_shard_error& e, event_counts& counts) {
  if (!lost_.insert(e.where().shard).second) return;
  lost_shards_.fetch_add(1, std::memory_order_relaxed);
  if (lost_.size() <= max_shown) first_lost_ += std::string("\n  ") + e.what();
  counts.count("shards lost to damage");
  post_lost("a shard is lost, and the run continues with damaged rows in place of its samples: ", e, counts);
}

MILLRACE_RARE void damage_account::post_lost(const char* text, const error& e, event_counts& counts) {
  ++lost_shards_posted_;
  counts.post({.kind = notice_kind::lost_shard,
               .severity = notice_severity::loss,
               .text = std::string(text) + e.what(),
               .where = e.where()},
              max_posted);
}

MILLRACE_RARE std::optional<notice> damage_account::summary() const {
  const std::uint64_t rows = replaced() + masked();
  if (damaged_ <= 1 && lost_shards_posted_ <= max_posted) return std::nullopt;
  return notice{.kind = damaged_ > 0 ? notice_kind::damaged_sample : notice_kind::lost_shard,
                .severity = notice_severity::loss,
                .text = "damage in this session: " + std::to_string(damaged_) + " damaged samples and " +
                        std::to_string(lost_shards_posted_) + " lost shards; " + std::to_string(replaced()) +
                        " rows were replaced and " + std::to_string(masked()) + " masked, of " +
                        std::to_string(std::max(rows_, rows)) + " rows"};
}

MILLRACE_RARE void damage_account::check(std::uint64_t rows) const {
  if (lost_.size() > options_.shards_at_most)
    throw lost_shards::too_many(lost_.size(), options_.shards_at_most, first_lost_);
  if (options_.at_most && damaged_ > *options_.at_most)
    throw_too_many("at most " + std::to_string(*options_.at_most), "at_most");
  if (in_a_row_ > options_.in_a_row)
    throw_too_many("at most " + std::to_string(options_.in_a_row) + " in a row", "in_a_row");
  if (damaged_ <= share_counts_above) return;
  if (static_cast<double>(damaged_) <= options_.at_most_share * static_cast<double>(rows)) return;
  char limit[80];
  std::snprintf(limit, sizeof limit, "at most %.3g %% of %llu rows", 100 * options_.at_most_share,
                static_cast<unsigned long long>(rows));
  throw_too_many(limit, "at_most_share");
}

MILLRACE_RARE void damage_account::throw_too_many(const std::string& limit, const char* option) const {
  throw data_error("too many samples are damaged: got " + std::to_string(damaged_) + " in this session, expected " +
                       limit + "; the first damaged samples:" + first_,
                   std::string("Inspect the data, or raise damage_options::") + option);
}

}}}   // namespace millrace::detail
