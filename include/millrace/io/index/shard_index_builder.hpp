// Builds the index of a shard from its members, in order, by the rules of shard_reader.
//
//   mr::detail::shard_index_builder build;
//   build.take({.name = "a.jpg", .size_bytes = 700, .offset_bytes = 0, .payload_offset_bytes = 512, .regular = true});
//   mr::detail::shard_index index = build.finish();           // or .finish_damaged(error)
//
// Errors: setup_error for a shard beyond the limits of an index. Threads: one. A builder makes one index.
#pragma once

#include <millrace/io/index/shard_index.hpp>
#include <millrace/io/tar/member_name.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Collects the columns of one index.
class shard_index_builder {
 public:
  /// Adds the next member to its sample, or counts it as skipped.
  void take(const tar_member& member) {
    last_is_payload_ = false;
    const member_name name = split_member_name(member.name);
    if (!member.regular || name.kind != member_name::kind_of_name::sample) return count_passed_over(member, name);
    if (open_ && name.key != open_key()) close_sample();
    if (!open_) open_sample(name.key, member.offset_bytes);
    const bool described = !member.sparse && member.payload_offset_bytes % tar_block_bytes == 0 &&
                           member.size_bytes <= std::numeric_limits<std::uint32_t>::max();
    payload_blocks_.push_back(described ? block_of(member.payload_offset_bytes) : index_columns::in_pieces);
    payload_sizes_.push_back(described ? static_cast<std::uint32_t>(member.size_bytes) : 0);
    member_fields_.push_back(number_of(name.field));
    last_is_payload_ = true;
  }

  /// Marks the last member as not stored in one piece: its payload does not lie where its header said.
  void last_is_in_pieces() noexcept {
    if (!last_is_payload_) return;
    payload_blocks_.back() = index_columns::in_pieces;
    payload_sizes_.back() = 0;
  }

  /// Sets the number of raw names.
  void count_unconverted_names(std::uint64_t count) noexcept { facts_.counters.unconverted_names = count; }
  /// Sets whether the end marker is missing: 1 or 0.
  void count_missing_end_markers(std::uint64_t count) noexcept { facts_.counters.missing_end_markers = count; }

  /// Closes the open sample if the damaged file called `name` begins another one: the open sample is complete then.
  void end_sample_before(std::string_view name) {
    if (open_ && begins_other_sample(name, open_key())) close_sample();
  }

  /// Returns the index of a whole shard.
  shard_index finish() {
    if (open_) close_sample();
    return pack({});
  }

  /// Returns the index of a damaged shard. The sample that is open at the damage is not in it.
  shard_index finish_damaged(const error& damage) {
    facts_.state = shard_index::shard_state::damaged;
    facts_.damage_offset_bytes = damage.where().offset_bytes;
    facts_.resume_offset_bytes = open_                    ? tar_block_bytes * std::uint64_t{sample_blocks_.back()}
                                 : sample_blocks_.empty() ? 0 : damage.where().offset_bytes;
    drop_open_sample();
    return pack(damage.message());
  }

 private:
  static std::uint32_t block_of(std::uint64_t offset_bytes) {
    const std::uint64_t block = offset_bytes / tar_block_bytes;
    if (block >= index_columns::in_pieces) too_large();
    return static_cast<std::uint32_t>(block);
  }
  [[noreturn]] static void too_large() {
    throw setup_error("the shard is larger than an index can describe (2 TiB, 2^32 - 2 members, 4 GiB of names)",
                      "Write smaller shards");
  }
  static std::uint32_t checked(std::size_t count) {
    if (count >= std::numeric_limits<std::uint32_t>::max()) too_large();
    return static_cast<std::uint32_t>(count);
  }

  std::string_view open_key() const noexcept { return std::string_view(keys_).substr(closed_key_bytes()); }
  std::size_t closed_key_bytes() const noexcept { return key_ends_.empty() ? 0 : key_ends_.back(); }

  void open_sample(std::string_view key, std::uint64_t offset_bytes) {
    sample_blocks_.push_back(block_of(offset_bytes));
    keys_ += key;
    open_ = true;
  }
  void close_sample() {
    key_ends_.push_back(checked(keys_.size()));
    member_ends_.push_back(checked(payload_blocks_.size()));
    checked(sample_blocks_.size());
    open_ = false;
  }
  void drop_open_sample() {
    if (!open_) return;
    const std::size_t members = member_ends_.empty() ? 0 : member_ends_.back();
    sample_blocks_.pop_back();
    keys_.resize(closed_key_bytes());
    payload_blocks_.resize(members);
    payload_sizes_.resize(members);
    member_fields_.resize(members);
    open_ = false;
  }

  void count_passed_over(const tar_member& member, const member_name& name) noexcept {
    using enum member_name::kind_of_name;
    shard_counters& c = facts_.counters;
    ++(!member.regular ? c.not_regular : name.kind == metadata ? c.metadata_members
       : name.kind == dot_file ? c.dot_files : c.names_without_dot);
  }

  /// Returns the number of a field. Tries the field at the same place in the previous sample first: most samples have
  /// the same fields in the same order.
  std::uint32_t number_of(std::string_view written) {
    lowered_.assign(written);
    for (char& c : lowered_)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const std::size_t before = member_ends_.empty() ? 0 : member_ends_.back();
    const std::size_t before_that = member_ends_.size() < 2 ? 0 : member_ends_[member_ends_.size() - 2];
    const std::size_t alike = before_that + (member_fields_.size() - before);
    if (alike < before && field_names_[member_fields_[alike]] == lowered_) return member_fields_[alike];
    const auto known = fields_.find(lowered_);
    if (known != fields_.end()) return known->second;
    const std::uint32_t number = checked(field_names_.size());
    fields_.emplace(lowered_, number);
    field_names_.push_back(lowered_);
    return number;
  }

  shard_index pack(std::string_view damage) {
    facts_.counters.samples = member_ends_.size();
    std::string names;
    std::vector<std::uint32_t> ends;
    for (const std::string& name : field_names_) ends.push_back(checked((names += name).size()));
    index_columns columns({.samples = checked(member_ends_.size()), .members = checked(payload_blocks_.size()),
                           .fields = checked(ends.size()), .key_bytes = checked(keys_.size()),
                           .field_bytes = checked(names.size()), .damage_bytes = checked(damage.size())});
    std::size_t number = 0;
    for (const auto* column : {&sample_blocks_, &key_ends_, &member_ends_, &payload_blocks_, &payload_sizes_,
                               &member_fields_}) {
      const auto place = columns.column(number++);
      std::copy(column->begin(), column->end(), place.begin());
    }
    std::fill(columns.checksums().begin(), columns.checksums().end(), 0U);
    std::copy(ends.begin(), ends.end(), columns.field_ends().begin());
    char* text = columns.text();
    for (const std::string_view part : {std::string_view(keys_), std::string_view(names), damage})
      text = std::copy(part.begin(), part.end(), text);
    facts_.fingerprint = digest_bytes(columns.bytes(), columns.counts.samples);
    return {facts_, std::move(columns)};
  }

  shard_index::shard_facts facts_{};
  std::vector<std::uint32_t> sample_blocks_, key_ends_, member_ends_, payload_blocks_, payload_sizes_, member_fields_;
  std::string keys_, lowered_;
  std::vector<std::string> field_names_;
  std::map<std::string, std::uint32_t, std::less<>> fields_;
  bool open_ = false;
  bool last_is_payload_ = false;
};

}}}  // namespace millrace::detail
