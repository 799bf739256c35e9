// Definitions for key_list.hpp.
#pragma once

#include <millrace/io/index/choice/key_list.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE void key_table::add(std::string_view key, std::string_view shard) {
  std::uint32_t of = any_shard;
  if (!shard.empty()) {
    shard.remove_prefix(shard.rfind('/') + 1);
    auto known = shards_.find(shard);
    if (known == shards_.end())
      known = shards_.emplace(std::string(shard), static_cast<std::uint32_t>(shards_.size())).first;
    of = known->second;
  }
  if (key.size() > std::numeric_limits<std::uint32_t>::max())
    throw setup_error("a key of a list has " + std::to_string(key.size()) + " bytes", "Check what wrote the list");
  entries_.push_back({digest_bytes(bytes_of(key)), text_.size(), static_cast<std::uint32_t>(key.size()), of});
  text_ += key;
}

MILLRACE_INLINE void key_table::sort() {
  // The entry for any shard comes before others with the same key.
  const auto rank = [&](const entry& e) { return std::pair(key_of(e), e.shard == any_shard ? 0 : e.shard + 1); };
  std::sort(entries_.begin(), entries_.end(), [&](const entry& a, const entry& b) {
    return a.hash != b.hash ? a.hash < b.hash : rank(a) < rank(b);
  });
  const auto covers = [&](const entry& kept, const entry& next) {
    return kept.hash == next.hash && key_of(kept) == key_of(next) &&
           (kept.shard == any_shard || kept.shard == next.shard);
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), covers), entries_.end());
}

MILLRACE_INLINE std::size_t key_table::find(std::string_view key, std::string_view shard) const noexcept {
  const std::uint64_t hash = digest_bytes(bytes_of(key));
  auto at = std::lower_bound(entries_.begin(), entries_.end(), hash,
                             [](const entry& e, std::uint64_t wanted) { return e.hash < wanted; });
  const auto of = shards_.find(shard.substr(shard.rfind('/') + 1));
  for (; at != entries_.end() && at->hash == hash; ++at)
    if (key_of(*at) == key && (at->shard == any_shard || (of != shards_.end() && at->shard == of->second)))
      return static_cast<std::size_t>(at - entries_.begin());
  return none;
}

}  // namespace detail

MILLRACE_INLINE key_list::key_list(const std::vector<std::string>& keys) {
  auto table = std::make_shared<detail::key_table>();
  for (const std::string& key : keys) table->add(key, {});
  table->sort();
  keys_ = std::move(table);
}

}}  // namespace millrace
