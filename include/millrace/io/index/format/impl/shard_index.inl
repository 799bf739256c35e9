// Definitions for shard_index.hpp.
#pragma once

#include <millrace/io/index/format/shard_index.hpp>

#include <millrace/base/digest.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t index_counts::all_bytes() const noexcept {
  return (text_at() + key_bytes + field_bytes + damage_bytes + 3) / 4 * 4;
}

MILLRACE_INLINE index_columns::index_columns(const index_counts& c)
    : counts(c), words(new std::uint32_t[static_cast<std::size_t>(c.all_bytes() / 4)]) {
  if (c.all_bytes() > 0) words[static_cast<std::size_t>(c.all_bytes() / 4) - 1] = 0;   // padding of the last word
}

MILLRACE_INLINE std::string_view index_columns::damage() const noexcept {
  return {text() + counts.key_bytes + counts.field_bytes, counts.damage_bytes};
}

MILLRACE_INLINE std::span<const std::byte> index_columns::bytes() const noexcept {
  return std::as_bytes(std::span(words.get(), static_cast<std::size_t>(counts.all_bytes() / 4)));
}

MILLRACE_INLINE shard_index::shard_index(shard_facts facts, index_columns columns) noexcept
    : facts_(facts), columns_(std::move(columns)) {}

MILLRACE_INLINE std::uint32_t shard_index::learn_checksum(std::uint32_t member, std::uint32_t checksum) noexcept {
  std::uint32_t current = 0;
  __atomic_compare_exchange_n(&columns_.checksums()[member], &current, checksum, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  return current == 0 ? checksum : current;
}

MILLRACE_INLINE void shard_index::set_checksum(std::uint32_t member, std::uint32_t checksum) noexcept {
  __atomic_store_n(&columns_.checksums()[member], checksum, __ATOMIC_RELAXED);
}

MILLRACE_RARE void shard_index::copy_checksums_from(const shard_index& before) noexcept {
  const bool same = fingerprint() == before.fingerprint();
  for (std::uint32_t s = 0, b = 0; s < samples(); ++s) {
    const indexed_sample now = sample(s);
    while (b < before.samples() && before.sample(b).offset_bytes < now.offset_bytes) ++b;
    if (b == before.samples()) return;
    const indexed_sample then = before.sample(b);
    if (then.offset_bytes != now.offset_bytes || then.key != now.key) continue;
    for (std::uint32_t m = now.first_member; m < now.end_member; ++m)
      for (std::uint32_t old = then.first_member; old < then.end_member; ++old)
        if (is_unmoved(member(m), before.member(old), same)) set_checksum(m, before.checksum(old));
  }
}

MILLRACE_RARE bool shard_index::begins_with(const shard_index& part) const noexcept {
  if (part.samples() > samples()) return false;
  for (std::uint32_t number = 0; number < part.samples(); ++number) {
    const indexed_sample mine = sample(number), other = part.sample(number);
    if (mine.key != other.key || mine.offset_bytes != other.offset_bytes) return false;
  }
  return true;
}

MILLRACE_RARE void shard_index::count_returning_keys() {
  facts_.counters.returning_keys = 0;
  std::uint32_t in_order = 1;
  while (in_order < samples() && sample(in_order - 1).key < sample(in_order).key) ++in_order;
  if (in_order >= samples()) return;
  std::vector<std::uint64_t> digests(samples());
  for (std::uint32_t i = 0; i < samples(); ++i) digests[i] = digest_bytes(std::as_bytes(std::span(sample(i).key)));
  std::sort(digests.begin(), digests.end());
  const auto unique = std::unique(digests.begin(), digests.end()) - digests.begin();
  facts_.counters.returning_keys = samples() - static_cast<std::uint64_t>(unique);
}

MILLRACE_INLINE std::uint64_t shard_index::known_checksums() const noexcept {
  std::uint64_t count = 0;
  for (std::uint32_t m = 0; m < members(); ++m) count += checksum(m) != 0;
  return count;
}

MILLRACE_INLINE bool shard_index::is_unmoved(const indexed_member& now, const indexed_member& then,
                                             bool same_fingerprint) noexcept {
  if (now.field != then.field || now.in_one_piece != then.in_one_piece) return false;
  return now.in_one_piece ? now.offset_bytes == then.offset_bytes && now.size_bytes == then.size_bytes
                          : same_fingerprint;
}

}}}   // namespace millrace::detail
