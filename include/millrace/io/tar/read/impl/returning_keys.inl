// Definitions for returning_keys.hpp.
#pragma once

#include <millrace/io/tar/read/returning_keys.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/tar/format/member_name.hpp>
#include <millrace/io/tar/read/tar_reader.hpp>
#include <millrace/measure/values/event_counts.hpp>

#include <new>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool key_memory::is_returning(std::string_view key) {
  std::uint64_t digest = digest_bytes(bytes_of(key));
  if (digest == empty) digest = 1;
  if (digest % weight_ != 0) return false;
  if (2 * (keys_ + 1) > table_.size()) grow();
  if (digest % weight_ != 0 || insert(digest)) return false;
  returned_ += weight_;
  return true;
}

MILLRACE_INLINE bool key_memory::insert(std::uint64_t digest) {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = static_cast<std::size_t>(digest >> 32) & mask;; at = (at + 1) & mask) {
    if (table_[at] == digest) return false;
    if (table_[at] != empty) continue;
    table_[at] = digest;
    ++keys_;
    return true;
  }
}

MILLRACE_INLINE void key_memory::grow() {
  constexpr std::size_t first_size = 512;
  const bool full = keys_ >= max_keys_;
  if (full) weight_ *= 2;
  const auto before = std::exchange(
      table_, std::vector<std::uint64_t>(full ? table_.size() : std::max(first_size, 2 * table_.size())));
  keys_ = 0;
  for (const std::uint64_t digest : before)
    if (digest != empty && digest % weight_ == 0) insert(digest);
}

MILLRACE_RARE void report_returning_keys(event_counts& counts, std::uint64_t samples, std::string_view shard) noexcept {
  counts.count("keys that occur again later in their shard", samples);
  try {
    counts.post({.kind = notice_kind::returning_keys,
                 .severity = notice_severity::warning,
                 .text = "the shard " + printable(shard) + " has " + std::to_string(samples) +
                         (samples == 1 ? " sample whose key occurs" : " samples whose keys occur") +
                         " again later in the shard: the members of a sample are not next to each other, so each piece "
                         "is a sample with some of the fields. Write the shard again with `tar --sort=name`. Further "
                         "such shards are only counted",
                 .where = {.stage = "tar", .shard = std::string(shard)}});
  } catch (const std::bad_alloc&) {
    // The event was counted. Only the notice is lost.
  }
}

MILLRACE_RARE std::optional<other_piece> find_other_piece_of_sample(std::unique_ptr<byte_source> source,
                                                                    std::string_view key,
                                                                    std::uint64_t own_offset_bytes,
                                                                    std::uint64_t max_bytes) {
  constexpr std::size_t max_text_bytes = 200;
  std::optional<other_piece> piece;
  try {
    block_pool pool;
    tar_reader tar(std::move(source), pool);
    bool in_piece = false, in_own = false;
    while (const auto member = tar.next()) {
      if (member->offset_bytes > max_bytes) break;
      const member_name name = split_member_name(member->name);
      if (!member->regular || name.kind != member_name::kind_of_name::sample) continue;
      if (name.key != key) {
        if (in_piece) break;
        in_own = false;
        continue;
      }
      if (!in_piece && (in_own || member->offset_bytes == own_offset_bytes)) {
        in_own = true;
        continue;
      }
      if (!std::exchange(in_piece, true)) piece = other_piece{.offset_bytes = member->offset_bytes};
      if (piece->fields.size() < max_text_bytes)
        piece->fields += (piece->fields.empty() ? "'" : ", '") + printable(name.field, 60) + "'";
    }
  } catch (const error&) {
    // The headers before the damage are valid.
  }
  return piece;
}

MILLRACE_RARE std::string text_of(const other_piece& piece, std::uint64_t own_offset_bytes) {
  return std::string("; its key ") +
         (piece.offset_bytes > own_offset_bytes ? "occurs again later" : "occurred before") +
         " in the shard, at offset " + std::to_string(piece.offset_bytes) + " with " + piece.fields;
}

}}}   // namespace millrace::detail
