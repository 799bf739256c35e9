// Definitions for tar_index_scan.hpp.
#pragma once

#include <millrace/io/index/format/tar_index_scan.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/io/tar/read/plain_tar.hpp>
#include <millrace/io/tar/read/tail_source.hpp>
#include <millrace/item/owner.hpp>

#include <limits>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE void shard_index_builder::add(const tar_member& member) {
  last_is_payload_ = false;
  const member_name name = split_member_name(member.name);
  if (!member.regular || name.kind != member_name::kind_of_name::sample) return count_skipped(member, name);
  if (open_ && name.key != open_key()) close_sample();
  if (!open_) open_sample(name.key, member.offset_bytes);
  const bool described = !member.sparse && member.payload_offset_bytes % tar_block_bytes == 0 &&
                         member.size_bytes <= std::numeric_limits<std::uint32_t>::max();
  payload_blocks_.push_back(described ? block_of(member.payload_offset_bytes) : index_columns::in_pieces);
  payload_sizes_.push_back(described ? static_cast<std::uint32_t>(member.size_bytes) : 0);
  member_fields_.push_back(number_of(name.field));
  last_is_payload_ = true;
}

MILLRACE_INLINE void shard_index_builder::mark_last_as_pieces() noexcept {
  if (!last_is_payload_) return;
  payload_blocks_.back() = index_columns::in_pieces;
  payload_sizes_.back() = 0;
}

MILLRACE_INLINE void shard_index_builder::end_sample_before(std::string_view name) {
  if (open_ && begins_other_sample(name, open_key())) close_sample();
}

MILLRACE_RARE shard_index shard_index_builder::finish() {
  if (open_) close_sample();
  return pack({});
}

MILLRACE_RARE shard_index shard_index_builder::finish_damaged(const error& damage) {
  facts_.state = shard_index::shard_state::damaged;
  facts_.damage_offset_bytes = damage.where().offset_bytes;
  facts_.resume_offset_bytes = open_                    ? tar_block_bytes * std::uint64_t{sample_blocks_.back()}
                               : sample_blocks_.empty() ? 0
                                                        : damage.where().offset_bytes;
  discard_open_sample();
  return pack(damage.message());
}

MILLRACE_INLINE std::uint32_t shard_index_builder::block_of(std::uint64_t offset_bytes) {
  const std::uint64_t block = offset_bytes / tar_block_bytes;
  if (block >= index_columns::in_pieces) too_large();
  return static_cast<std::uint32_t>(block);
}

MILLRACE_RARE void shard_index_builder::too_large() {
  throw setup_error("the shard exceeds a limit of the index: at most 2 TiB, 2^32 - 2 members and 4 GiB of names",
                    "Write smaller shards");
}

MILLRACE_INLINE std::uint32_t shard_index_builder::checked(std::size_t count) {
  if (count >= std::numeric_limits<std::uint32_t>::max()) too_large();
  return static_cast<std::uint32_t>(count);
}

MILLRACE_INLINE void shard_index_builder::open_sample(std::string_view key, std::uint64_t offset_bytes) {
  sample_blocks_.push_back(block_of(offset_bytes));
  keys_ += key;
  open_ = true;
}

MILLRACE_INLINE void shard_index_builder::close_sample() {
  key_ends_.push_back(checked(keys_.size()));
  member_ends_.push_back(checked(payload_blocks_.size()));
  checked(sample_blocks_.size());
  open_ = false;
}

MILLRACE_INLINE void shard_index_builder::discard_open_sample() {
  if (!open_) return;
  const std::size_t members = member_ends_.empty() ? 0 : member_ends_.back();
  sample_blocks_.pop_back();
  keys_.resize(closed_key_bytes());
  payload_blocks_.resize(members);
  payload_sizes_.resize(members);
  member_fields_.resize(members);
  open_ = false;
}

MILLRACE_INLINE void shard_index_builder::count_skipped(const tar_member& member, const member_name& name) noexcept {
  using enum member_name::kind_of_name;
  shard_counters& c = facts_.counters;
  ++(!member.regular         ? c.not_regular
     : name.kind == metadata ? c.metadata_members
     : name.kind == dot_file ? c.dot_files
                             : c.names_without_dot);
}

MILLRACE_INLINE std::uint32_t shard_index_builder::number_of(std::string_view name) {
  lowercase_.assign(name);
  for (char& c : lowercase_)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t before = member_ends_.empty() ? 0 : member_ends_.back();
  const std::size_t before_that = member_ends_.size() < 2 ? 0 : member_ends_[member_ends_.size() - 2];
  const std::size_t candidate = before_that + (member_fields_.size() - before);
  if (candidate < before && field_names_[member_fields_[candidate]] == lowercase_) return member_fields_[candidate];
  const auto entry = fields_.find(lowercase_);
  if (entry != fields_.end()) return entry->second;
  const std::uint32_t number = checked(field_names_.size());
  fields_.emplace(lowercase_, number);
  field_names_.push_back(lowercase_);
  return number;
}

MILLRACE_RARE shard_index shard_index_builder::pack(std::string_view damage) {
  facts_.counters.samples = member_ends_.size();
  std::string names;
  std::vector<std::uint32_t> ends;
  for (const std::string& name : field_names_) ends.push_back(checked((names += name).size()));
  index_columns columns({.samples = checked(member_ends_.size()),
                         .members = checked(payload_blocks_.size()),
                         .fields = checked(ends.size()),
                         .key_bytes = checked(keys_.size()),
                         .field_bytes = checked(names.size()),
                         .damage_bytes = checked(damage.size())});
  std::size_t number = 0;
  for (const auto* column :
       {&sample_blocks_, &key_ends_, &member_ends_, &payload_blocks_, &payload_sizes_, &member_fields_}) {
    const auto place = columns.column(number++);
    std::copy(column->begin(), column->end(), place.begin());
  }
  std::fill(columns.checksums().begin(), columns.checksums().end(), 0U);
  std::copy(ends.begin(), ends.end(), columns.field_ends().begin());
  char* text = columns.text();
  for (const std::string_view part : {std::string_view(keys_), std::string_view(names), damage})
    text = std::copy(part.begin(), part.end(), text);
  facts_.fingerprint = digest_bytes(columns.bytes(), columns.counts.samples);
  shard_index index(facts_, std::move(columns));
  index.count_returning_keys();
  return index;
}

MILLRACE_INLINE std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  plain_tar tar(source, pool);
  for (;;) {
    switch (tar.next()) {
      case plain_tar::result::member: build.add(tar.member()); break;
      case plain_tar::result::end: return build.finish();
      case plain_tar::result::odd: return std::nullopt;
    }
  }
}

MILLRACE_INLINE shard_index scan_any_shard(byte_source& source, block_pool& pool) {
  shard_index_builder build;
  owner<tar_reader> tar;
  try {
    tar = make_owner<tar_reader>(std::unique_ptr<byte_source>(new borrowed_byte_source(source)), pool);
    if (tar->compressed()) return {{.state = shard_index::shard_state::compressed}, index_columns(index_counts{})};
    std::optional<std::uint64_t> expected_end;
    for (;;) {
      const auto member = tar->next();
      // If a payload uses more or less space in the archive than its header states, the payload has holes.
      if (expected_end && *expected_end != (member ? member->offset_bytes : tar->end_marker_at()))
        build.mark_last_as_pieces();
      if (!member) break;
      build.add(*member);
      expected_end = member->payload_offset_bytes + member->size_bytes + tar_padding(member->size_bytes);
    }
    build.count_unconverted_names(tar->unconverted_names());
    build.count_missing_end_markers(tar->ended_without_marker());
    return build.finish();
  } catch (const data_error& damage) {
    if (tar) build.count_unconverted_names(tar->unconverted_names());
    if (tar && tar->certain_name()) build.end_sample_before(*tar->certain_name());
    return build.finish_damaged(damage);
  }
}

MILLRACE_INLINE shard_index scan_shard(byte_source& source, block_pool& pool) {
  const byte_range all{};   // one range, because one request for each header would be slower
  source.will_read({&all, 1});
  if (auto index = scan_plain_shard(source, pool)) return std::move(*index);
  source.will_read({&all, 1});
  return scan_any_shard(source, pool);
}

}}}   // namespace millrace::detail
