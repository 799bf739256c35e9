// Defines what shard_index.hpp declares.
#pragma once

#include <millrace/io/index/shard_index.hpp>

#include <millrace/base/digest.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint64_t index_counts::text_at() const noexcept {   // offset in bytes
  return 4 * (3 * std::uint64_t{samples} + 4 * std::uint64_t{members} + fields);
}

MILLRACE_INLINE std::uint64_t index_counts::all_bytes() const noexcept {
  return (text_at() + key_bytes + field_bytes + damage_bytes + 3) / 4 * 4;
}

MILLRACE_INLINE index_columns::index_columns(const index_counts& c)
    : counts(c), words(std::make_unique_for_overwrite<std::uint32_t[]>(static_cast<std::size_t>(c.all_bytes() / 4))) {
  if (c.all_bytes() > 0) words[static_cast<std::size_t>(c.all_bytes() / 4) - 1] = 0;   // padding of the last word
}

MILLRACE_INLINE std::span<std::uint32_t> index_columns::column(std::size_t number) const noexcept {
  const std::size_t samples = counts.samples, members = counts.members;
  if (number < 3) return {words.get() + number * samples, samples};
  if (number < 7) return {words.get() + 3 * samples + (number - 3) * members, members};
  return {words.get() + 3 * samples + 4 * members, counts.fields};
}

MILLRACE_INLINE std::string_view index_columns::damage() const noexcept {
  return {text() + counts.key_bytes + counts.field_bytes, counts.damage_bytes};
}

MILLRACE_INLINE std::span<const std::byte> index_columns::bytes() const noexcept {
  return std::as_bytes(std::span(words.get(), static_cast<std::size_t>(counts.all_bytes() / 4)));
}

MILLRACE_INLINE shard_index::shard_index(shard_facts facts, detail::index_columns columns) noexcept
    : facts_(facts), columns_(std::move(columns)) {}

MILLRACE_INLINE indexed_sample shard_index::sample(std::uint32_t number) const noexcept {
  const auto keys = columns_.key_ends(), members = columns_.member_ends();
  const std::uint32_t key_at = number == 0 ? 0 : keys[number - 1];
  return {.key = columns_.keys().substr(key_at, keys[number] - key_at),
          .offset_bytes = block_bytes * columns_.sample_blocks()[number],
          .first_member = number == 0 ? 0 : members[number - 1],
          .end_member = members[number]};
}

MILLRACE_INLINE indexed_member shard_index::member(std::uint32_t number) const noexcept {
  const std::uint32_t block = columns_.payload_blocks()[number];
  return {.field = field_name(columns_.member_fields()[number]),
          .offset_bytes = block_bytes * block,
          .size_bytes = columns_.payload_sizes()[number],
          .in_one_piece = block != detail::index_columns::in_pieces};
}

MILLRACE_INLINE std::string_view shard_index::field_name(std::uint32_t field) const noexcept {
  const auto ends = columns_.field_ends();
  const std::uint32_t at = field == 0 ? 0 : ends[field - 1];
  return columns_.field_names().substr(at, ends[field] - at);
}

MILLRACE_INLINE std::uint32_t shard_index::checksum(std::uint32_t member) const noexcept {
  return std::atomic_ref(columns_.checksums()[member]).load(std::memory_order_relaxed);
}

MILLRACE_INLINE std::uint32_t shard_index::learn_checksum(std::uint32_t member, std::uint32_t checksum) noexcept {
  std::uint32_t known = 0;
  std::atomic_ref(columns_.checksums()[member]).compare_exchange_strong(known, checksum, std::memory_order_relaxed);
  return known == 0 ? checksum : known;
}

MILLRACE_INLINE void shard_index::set_checksum(std::uint32_t member, std::uint32_t checksum) noexcept {
  std::atomic_ref(columns_.checksums()[member]).store(checksum, std::memory_order_relaxed);
}

MILLRACE_INLINE void shard_index::take_checksums_of(const shard_index& before) noexcept {
  const bool same = fingerprint() == before.fingerprint();
  for (std::uint32_t s = 0, b = 0; s < samples(); ++s) {
    const indexed_sample now = sample(s);
    while (b < before.samples() && before.sample(b).offset_bytes < now.offset_bytes) ++b;
    if (b == before.samples()) return;
    const indexed_sample then = before.sample(b);
    if (then.offset_bytes != now.offset_bytes || then.key != now.key) continue;
    for (std::uint32_t m = now.first_member; m < now.end_member; ++m)
      for (std::uint32_t old = then.first_member; old < then.end_member; ++old)
        if (lies_where(member(m), before.member(old), same)) set_checksum(m, before.checksum(old));
  }
}

MILLRACE_INLINE bool shard_index::begins_with(const shard_index& part) const noexcept {
  if (part.samples() > samples()) return false;
  for (std::uint32_t number = 0; number < part.samples(); ++number) {
    const indexed_sample mine = sample(number), other = part.sample(number);
    if (mine.key != other.key || mine.offset_bytes != other.offset_bytes) return false;
  }
  return true;
}

MILLRACE_INLINE std::uint64_t shard_index::known_checksums() const noexcept {
  std::uint64_t known = 0;
  for (std::uint32_t m = 0; m < members(); ++m) known += checksum(m) != 0;
  return known;
}

MILLRACE_INLINE bool shard_index::lies_where(const indexed_member& now, const indexed_member& then,
                                             bool same_fingerprint) noexcept {
  if (now.field != then.field || now.in_one_piece != then.in_one_piece) return false;
  return now.in_one_piece ? now.offset_bytes == then.offset_bytes && now.size_bytes == then.size_bytes
                          : same_fingerprint;
}

}}}  // namespace millrace::detail
