// Definitions for index_format.hpp.
#pragma once

#include <millrace/io/index/format/index_format.hpp>

#include <millrace/base/crc32c.hpp>

#include <cstring>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::uint32_t index_head::expected_head_checksum() const noexcept {
  return crc32c(std::as_bytes(std::span(this, 1)).first(offsetof(index_head, head_checksum)));
}

MILLRACE_INLINE std::uint32_t index_entries_head::expected_checksum(const index_head& head) const noexcept {
  const std::uint32_t of_head = crc32c(std::as_bytes(std::span(&head.head_checksum, 1)));
  return crc32c(std::as_bytes(std::span(this, 1)).first(offsetof(index_entries_head, checksum)), of_head);
}

MILLRACE_INLINE std::uint64_t index_front::bytes_before_index_entries() const noexcept {
  return columns_at() + head.counts.all_bytes() + (has_entries() ? 4 * std::uint64_t{head.counts.members} : 0);
}

MILLRACE_INLINE std::uint64_t entries_begin_at(const index_counts& counts) noexcept {
  return index_front{.head = {.version = index_head::with_entries, .counts = counts}}.bytes_before_index_entries();
}

MILLRACE_RARE shard_index::shard_facts index_head::facts() const noexcept {
  const bool marked = state != complete_without_marker;
  return {.state = marked ? state : shard_index::shard_state::complete,
          .identity = identity(),
          .fingerprint = fingerprint,
          .damage_offset_bytes = damage_offset_bytes,
          .resume_offset_bytes = resume_offset_bytes,
          .counters = {.samples = counts.samples,
                       .metadata_members = metadata_members,
                       .dot_files = dot_files,
                       .names_without_dot = names_without_dot,
                       .not_regular = not_regular,
                       .unconverted_names = unconverted_names,
                       .missing_end_markers = marked ? 0U : 1U}};
}

MILLRACE_RARE std::vector<std::byte> index_bytes(const shard_index& index) {
  const index_columns& columns = index.columns();
  const shard_index::shard_facts& facts = index.facts();
  const shard_counters& c = facts.counters;
  const auto body = columns.bytes();
  const auto ends = std::as_bytes(std::span(index.entries().ends));
  index_front front{
      .head = {.version = index.entries().built ? index_head::with_entries : index_head::expected_version}};
  const auto columns_at = static_cast<std::size_t>(front.columns_at());
  std::vector<std::byte> file(columns_at + body.size() + ends.size());
  const auto checksums_at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(columns.checksums().data()) -
                                                     body.data());
  const std::size_t checksums_end = checksums_at + columns.checksums().size_bytes();
  std::byte* const copy = file.data() + columns_at;
  const auto copy_part = [&](std::size_t begin, std::size_t end) {
    if (begin < end) std::memcpy(copy + begin, body.data() + begin, end - begin);
  };
  copy_part(0, checksums_at);
  copy_part(checksums_end, body.size());
  std::uint32_t checksums = 0;
  for (std::uint32_t m = 0; m < index.members(); ++m) {
    const std::uint32_t checksum = index.checksum(m);
    checksums += checksum != 0;
    std::memcpy(copy + checksums_at + 4 * std::size_t{m}, &checksum, 4);
  }
  if (!ends.empty()) std::memcpy(copy + body.size(), ends.data(), ends.size());
  front.head = index_head{.version = front.head.version,
                          .shard_bytes = facts.identity.size_bytes,
                          .shard_modified_ns = facts.identity.modified_ns,
                          .fingerprint = facts.fingerprint,
                          .damage_offset_bytes = facts.damage_offset_bytes,
                          .resume_offset_bytes = facts.resume_offset_bytes,
                          .metadata_members = c.metadata_members,
                          .dot_files = c.dot_files,
                          .names_without_dot = c.names_without_dot,
                          .not_regular = c.not_regular,
                          .unconverted_names = c.unconverted_names,
                          .counts = columns.counts,
                          .state = c.missing_end_markers > 0 ? index_head::complete_without_marker : facts.state,
                          .body_checksum = crc32c({copy, body.size()}),
                          .known_checksums = checksums};
  front.head.head_checksum = front.head.expected_head_checksum();
  front.entries = index_entries_head{.bytes = index.entries().bytes(), .ends_checksum = crc32c(ends)};
  front.entries.checksum = front.entries.expected_checksum(front.head);
  std::memcpy(file.data(), &front, columns_at);
  return file;
}

MILLRACE_INLINE std::string find_defect(const index_front& front, std::uint64_t file_bytes) {
  const index_head& head = front.head;
  const index_counts& c = head.counts;
  const std::uint64_t limit = head.shard_bytes;   // everything that an index counts uses at least one byte of the shard
  constexpr std::uint32_t longest_damage_bytes = 1 << 20;
  if (head.state != shard_index::shard_state::complete && head.state != shard_index::shard_state::damaged &&
      head.state != index_head::complete_without_marker)
    return "it describes an unknown kind of shard";
  if (c.samples > c.members || c.members > limit / tar_block_bytes || c.fields > c.members || c.key_bytes > limit ||
      c.field_bytes > limit || c.damage_bytes > longest_damage_bytes)
    return "its counts exceed the size of the shard";
  if (head.damage_offset_bytes > limit || head.resume_offset_bytes > limit ||
      head.resume_offset_bytes % tar_block_bytes != 0)
    return "the damage that it records is outside of the shard";
  const std::uint64_t entries = front.has_entries() ? front.entries.bytes : 0;
  if (entries > entry_table::largest_bytes) return "it has more entry points than an index can have";
  if (file_bytes != front.bytes_before_index_entries() + entries) return "its size does not match its columns";
  return {};
}

MILLRACE_INLINE std::string find_defect(const index_head& head, const index_columns& columns) {
  const auto ends_rise_to = [](std::span<const std::uint32_t> ends, std::uint32_t last, std::uint32_t min_step) {
    std::uint64_t before = 0;
    bool rising = true;
    for (const std::uint32_t end : ends) rising &= std::exchange(before, end) + min_step <= end;
    return rising && before == last;
  };
  const index_counts& c = columns.counts;
  if (!ends_rise_to(columns.key_ends(), c.key_bytes, 0) || !ends_rise_to(columns.member_ends(), c.members, 1) ||
      !ends_rise_to(columns.field_ends(), c.field_bytes, 0))
    return "its columns contradict each other";
  std::uint64_t next_block = 0;
  bool sound = true;
  for (const std::uint32_t block : columns.sample_blocks()) sound &= std::exchange(next_block, block + 1ULL) <= block;
  sound &= next_block <= head.shard_bytes / tar_block_bytes;
  const auto blocks = columns.payload_blocks(), sizes = columns.payload_sizes(), fields = columns.member_fields();
  std::uint64_t free_from = 0;   // if payloads overlapped, they could need more memory than the size of the shard
  for (std::size_t m = 0; m < blocks.size(); ++m) {
    sound &= fields[m] < c.fields;
    if (blocks[m] == index_columns::in_pieces) continue;
    const std::uint64_t begin = tar_block_bytes * std::uint64_t{blocks[m]};
    sound &= free_from <= begin;
    free_from = begin + sizes[m];
    sound &= free_from <= head.shard_bytes;
  }
  return sound ? "" : "it has a sample outside of the shard, or two overlapping samples";
}

MILLRACE_INLINE std::string find_defect(const index_front& front, const index_columns& columns,
                                        std::span<const std::uint32_t> ends) {
  const auto blocks = columns.payload_blocks(), sizes = columns.payload_sizes();
  bool sound = ends.size() == blocks.size();
  std::uint32_t before = 0;
  for (std::size_t m = 0; m < ends.size() && sound; ++m) {
    const std::uint32_t begin = std::exchange(before, ends[m]);
    if (begin == ends[m]) continue;
    // Limits the size of entries, for which readers allocate memory before they read them.
    sound = begin + entry_table::checksum_bytes < ends[m] && blocks[m] != index_columns::in_pieces &&
            ends[m] - begin - entry_table::checksum_bytes <= sizes[m];
  }
  return sound && before == front.entries.bytes ? "" : "its entry points do not match their payloads";
}

}}}   // namespace millrace::detail
