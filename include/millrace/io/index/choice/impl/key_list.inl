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
  std::uint32_t shard_number = any_shard;
  if (!shard.empty()) {
    shard.remove_prefix(shard.rfind('/') + 1);
    auto entry = shards_.find(shard);
    if (entry == shards_.end())
      entry = shards_.emplace(std::string(shard), static_cast<std::uint32_t>(shards_.size())).first;
    shard_number = entry->second;
  }
  if (key.size() > std::numeric_limits<std::uint32_t>::max())
    throw setup_error(
        "a key of a list is too long: got " + std::to_string(key.size()) + " bytes, expected less than 4 GiB",
        "Check the program that wrote the list");
  entries_.push_back({digest_bytes(bytes_of(key)), text_.size(), static_cast<std::uint32_t>(key.size()), shard_number});
  text_ += key;
}

MILLRACE_INLINE void key_table::sort() {
  // An entry that matches in any shard precedes the other entries with the same key.
  const auto rank = [&](const entry& e) { return std::pair(key_of(e), e.shard == any_shard ? 0 : e.shard + 1); };
  std::sort(entries_.begin(), entries_.end(),
            [&](const entry& a, const entry& b) { return a.hash != b.hash ? a.hash < b.hash : rank(a) < rank(b); });
  const auto covers = [&](const entry& first, const entry& second) {
    return first.hash == second.hash && key_of(first) == key_of(second) &&
           (first.shard == any_shard || first.shard == second.shard);
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), covers), entries_.end());
}

MILLRACE_INLINE std::size_t key_table::find(std::string_view key, std::string_view shard) const noexcept {
  const std::uint64_t hash = digest_bytes(bytes_of(key));
  auto at = std::lower_bound(entries_.begin(), entries_.end(), hash,
                             [](const entry& e, std::uint64_t value) { return e.hash < value; });
  const auto number = shards_.find(shard.substr(shard.rfind('/') + 1));
  for (; at != entries_.end() && at->hash == hash; ++at)
    if (key_of(*at) == key && (at->shard == any_shard || (number != shards_.end() && at->shard == number->second)))
      return static_cast<std::size_t>(at - entries_.begin());
  return none;
}

}   // namespace detail

MILLRACE_INLINE key_list::key_list(const std::vector<std::string>& keys) {
  auto table = std::make_shared<detail::key_table>();
  for (const std::string& key : keys) table->add(key, {});
  table->sort();
  keys_ = std::move(table);
}

}}   // namespace millrace
