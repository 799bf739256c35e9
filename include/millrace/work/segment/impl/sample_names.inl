// Defines what sample_names.hpp declares.
#pragma once

#include <millrace/work/segment/sample_names.hpp>

#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE record sample_names::make(std::string_view shard, std::string_view key, std::uint64_t offset_bytes) {
  using detail::record_head;
  block_ref block = pool_.take(sizeof(record_head) + key.size() + shard.size());
  std::byte* const base = block.get()->data();
  const record_head head{.key_at = sizeof head, .key_size = key.size(), .shard_at = sizeof head + key.size(),
                         .shard_size = shard.size(), .fields_at = 0, .field_count = 0, .offset_bytes = offset_bytes,
                         .head_at = 0, .held_bytes = block.get()->capacity_bytes};
  std::memcpy(base, &head, sizeof head);
  if (!key.empty()) std::memcpy(base + head.key_at, key.data(), key.size());
  if (!shard.empty()) std::memcpy(base + head.shard_at, shard.data(), shard.size());
  const auto* const lasting = reinterpret_cast<const record_head*>(base);
  block.get()->head = lasting;
  return record(lasting);
}

MILLRACE_INLINE record sample_names::child(const record& parent, std::uint64_t child) {
  return make(parent.shard(), std::string(parent.key()) + "#" + std::to_string(child), parent.offset_bytes());
}

}}}  // namespace millrace::detail
