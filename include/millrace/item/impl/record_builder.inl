// Definitions for record_builder.hpp.
#pragma once

#include <millrace/item/record_builder.hpp>

#include <millrace/base/random.hpp>

#include <algorithm>
#include <cstring>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE record_builder::record_builder(block_pool& pool) : pool_(&pool) {}

MILLRACE_INLINE void record_builder::begin(std::string_view shard, std::string_view key, std::uint64_t offset_bytes) {
  shard_ = shard;
  key_ = key;
  offset_bytes_ = offset_bytes;
  fields_.clear();
  entries_.clear();
  names_.clear();
  used_bytes_ = 0;
}

MILLRACE_INLINE bool record_builder::has(std::string_view name) const noexcept {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& f) { return std::string_view(names_).substr(f.name_at, f.name_size) == name; });
}

MILLRACE_INLINE std::span<std::byte> record_builder::add_field(std::string_view name, std::size_t size_bytes) {
  ensure_space(size_bytes);
  fields_.push_back({names_.size(), name.size(), used_bytes_, size_bytes});
  names_ += name;
  const std::span<std::byte> buffer(block_.get()->data() + used_bytes_, size_bytes);
  used_bytes_ += size_bytes;
  return buffer;
}

MILLRACE_INLINE void record_builder::set_entries(std::span<const std::byte> entries) {
  const detail::field_entry& last = fields_.back();
  if (!entries_.empty() && entries_.back().data_at == last.data_at) {
    used_bytes_ = entries_.back().entries_at;
    entries_.pop_back();
  }
  if (entries.empty() || last.data_size == 0) return;
  ensure_space(entries.size());
  std::memcpy(block_.get()->data() + used_bytes_, entries.data(), entries.size());
  entries_.push_back({last.data_at, last.data_size, used_bytes_, entries.size()});
  used_bytes_ += entries.size();
}

MILLRACE_INLINE void record_builder::drop_last_field() {
  set_entries({});
  used_bytes_ = fields_.back().data_at;
  names_.resize(fields_.back().name_at);
  fields_.pop_back();
}

MILLRACE_INLINE record record_builder::finish() {
  using detail::field_entry, detail::record_head;
  ensure_space(0);
  detail::block& block = *block_.get();
  std::byte* const base = block.data();
  std::size_t at = used_bytes_;
  const auto put_text = [&](std::string_view text) {
    if (!text.empty()) std::memcpy(base + at, text.data(), text.size());
    return std::exchange(at, at + text.size());
  };
  const std::size_t names_at = put_text(names_);
  const std::size_t key_at = put_text(key_);
  const std::size_t shard_at = put_text(shard_);
  at = aligned(detail::put_entries_table(block, at, entries_));
  const std::size_t fields_at = at;
  for (field_entry f : fields_) {
    f.name_at += names_at;
    std::memcpy(base + at, &f, sizeof f);
    at += sizeof f;
  }
  const record_head head{.key_at = key_at,
                         .key_size = key_.size(),
                         .shard_at = shard_at,
                         .shard_size = shard_.size(),
                         .fields_at = fields_at,
                         .field_count = fields_.size(),
                         .offset_bytes = offset_bytes_,
                         .head_at = at,
                         .held_bytes = block.capacity_bytes};
  std::memcpy(base + at, &head, sizeof head);
  const auto* stored_head = reinterpret_cast<const record_head*>(base + at);
  block.head = stored_head;
  const std::size_t largest = largest_field();
  tail_hint_bytes_ = at + sizeof head - largest;
  record result(stored_head);
  block_ = {};
  return result;
}

MILLRACE_INLINE std::size_t record_builder::largest_field() const noexcept {
  std::size_t largest = 0;
  for (const auto& f : fields_) largest = std::max(largest, f.data_size);
  return largest;
}

MILLRACE_INLINE void record_builder::ensure_space(std::size_t size_bytes) {
  const std::size_t table = 256 + names_.size() + key_.size() + shard_.size() +
                            (fields_.size() + 2) * (sizeof(detail::field_entry) + 64) + sizeof(detail::record_head) +
                            detail::entries_table_bytes(entries_.size() + 1);
  const std::size_t needed = used_bytes_ + size_bytes + table;
  if (block_ && block_.get()->capacity_bytes >= needed) return;
  auto larger = pool_->take(needed + (size_bytes > 0 ? std::min(tail_hint_bytes_, needed) : 0));
  if (used_bytes_ > 0) std::memcpy(larger.get()->data(), block_.get()->data(), used_bytes_);
  block_ = std::move(larger);
}

namespace detail {

MILLRACE_INLINE record record_join::run(block_pool& pool) const {
  std::size_t blocks = 0, fields = 0, name_bytes = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    ++blocks;
    fields += parts[i].field_count();
    for (std::size_t f = 0; f < parts[i].field_count() && !prefix(i).empty(); ++f)
      name_bytes += prefix(i).size() + parts[i].entries()[f].name_size;
  }
  if (blocks == 1 && name_bytes == 0) return parts.front();
  const std::size_t fields_at = blocks * sizeof(block*), head_at = fields_at + fields * sizeof(field_entry);
  std::size_t names_at = head_at + sizeof(record_head);
  auto own = pool.take(names_at + name_bytes);
  std::byte* const base = own.get()->data();
  const auto offset_of = [base](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(base);
  };
  const record& first = parts.front();
  record_head head{.key_at = offset_of(first.key().data()),
                   .key_size = first.key().size(),
                   .shard_at = offset_of(first.shard().data()),
                   .shard_size = first.shard().size(),
                   .fields_at = fields_at,
                   .field_count = fields,
                   .offset_bytes = first.offset_bytes(),
                   .head_at = head_at,
                   .held_bytes = own.get()->capacity_bytes};
  std::byte* entry_at = base + fields_at;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const record& part = parts[i];
    head.checksums = i == 0 ? part.checksums() : combine_keys(head.checksums, part.checksums());
    if (part.empty()) continue;
    block* const of_part = block_of(part.head_.get());
    of_part->holders.fetch_add(1, std::memory_order_relaxed);
    std::memcpy(base + own.get()->parts++ * sizeof of_part, &of_part, sizeof of_part);
    head.held_bytes += part.held_bytes();
    for (std::size_t f = 0; f < part.field_count(); ++f, entry_at += sizeof(field_entry)) {
      field_entry entry = part.entries()[f];
      const std::string_view name = part.text(entry.name_at, entry.name_size);
      entry.data_at = offset_of(part.address(entry.data_at));
      entry.name_at = offset_of(name.data());
      if (!prefix(i).empty()) {
        entry.name_at = names_at;
        entry.name_size += prefix(i).size();
        std::memcpy(base + names_at, prefix(i).data(), prefix(i).size());
        if (!name.empty()) std::memcpy(base + names_at + prefix(i).size(), name.data(), name.size());
        names_at += entry.name_size;
      }
      std::memcpy(entry_at, &entry, sizeof entry);
    }
  }
  std::memcpy(base + head_at, &head, sizeof head);
  const auto* const stored_head = reinterpret_cast<const record_head*>(base + head_at);
  own.get()->head = stored_head;
  return record(stored_head);
}

}   // namespace detail

}}   // namespace millrace
