// record_builder: builds a record field by field in one recycled block, for sources that make records.
//
//   mr::record_builder build(pool);
//   build.begin("train-000.tar", "n01/0001", offset_bytes);
//   std::span<std::byte> buffer = build.add_field("jpg", size_bytes);   // fill it before the next call
//   mr::record r = build.finish();
//
// Threads: one. Errors: std::bad_alloc only. The builder may be used again after finish() or begin().
#pragma once

#include <millrace/item/record.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Builds one record after the other.
class record_builder {
 public:
  /// Takes its blocks from `pool`, which must outlive the builder.
  explicit record_builder(block_pool& pool) : pool_(&pool) {}

  /// Begins a record; drops an unfinished one.
  void begin(std::string_view shard, std::string_view key, std::uint64_t offset_bytes) {
    shard_ = shard;
    key_ = key;
    offset_bytes_ = offset_bytes;
    fields_.clear();
    names_.clear();
    used_bytes_ = 0;
  }

  /// Returns true if the record already has a field of this name.
  bool has(std::string_view name) const noexcept {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const auto& f) { return std::string_view(names_).substr(f.name_at, f.name_size) == name; });
  }
  /// Returns the key of the record.
  std::string_view key() const noexcept { return key_; }
  /// Returns the number of fields so far.
  std::size_t field_count() const noexcept { return fields_.size(); }

  /// Adds a field and returns its buffer of `size_bytes`; the buffer is valid until the next call.
  std::span<std::byte> add_field(std::string_view name, std::size_t size_bytes) {
    make_room(size_bytes);
    fields_.push_back({names_.size(), name.size(), used_bytes_, size_bytes});
    names_ += name;
    const std::span<std::byte> buffer(block_.get()->data() + used_bytes_, size_bytes);
    used_bytes_ += size_bytes;
    return buffer;
  }

  /// Removes the field that was added last, because its bytes could not be read.
  void drop_last_field() {
    used_bytes_ = fields_.back().data_at;
    names_.resize(fields_.back().name_at);
    fields_.pop_back();
  }

  /// Returns the record, with all fields added since begin().
  record finish() {
    using detail::field_entry, detail::record_head;
    make_room(0);
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
    at = aligned(at);
    const std::size_t fields_at = at;
    for (field_entry f : fields_) {
      f.name_at += names_at;
      std::memcpy(base + at, &f, sizeof f);
      at += sizeof f;
    }
    const record_head head{key_at, key_.size(), shard_at, shard_.size(), fields_at, fields_.size(), offset_bytes_};
    std::memcpy(base + at, &head, sizeof head);
    const auto* lasting = reinterpret_cast<const record_head*>(base + at);
    block.head = lasting;
    const std::size_t largest = largest_field();
    tail_hint_bytes_ = at + sizeof head - largest;
    return {std::exchange(block_, {}), lasting};
  }

 private:
  static std::size_t aligned(std::size_t at) noexcept { return (at + 15) & ~std::size_t{15}; }

  std::size_t largest_field() const noexcept {
    std::size_t largest = 0;
    for (const auto& f : fields_) largest = std::max(largest, f.data_size);
    return largest;
  }

  /// Grows the block so that `size_bytes` more and the table at the end fit. The guess for the rest of the record is
  /// the size of the previous record without its largest field. So a big field followed by small ones is not copied.
  void make_room(std::size_t size_bytes) {
    const std::size_t table = 256 + names_.size() + key_.size() + shard_.size() +
                              (fields_.size() + 2) * (sizeof(detail::field_entry) + 64) + sizeof(detail::record_head);
    const std::size_t needed = used_bytes_ + size_bytes + table;
    if (block_ && block_.get()->capacity_bytes >= needed) return;
    auto larger = pool_->take(needed + (size_bytes > 0 ? std::min(tail_hint_bytes_, needed) : 0));
    if (used_bytes_ > 0) std::memcpy(larger.get()->data(), block_.get()->data(), used_bytes_);
    block_ = std::move(larger);
  }

  block_pool* pool_;
  detail::block_ref block_;
  std::string shard_, key_, names_;
  std::vector<detail::field_entry> fields_;
  std::uint64_t offset_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t tail_hint_bytes_ = 0;
};

}}  // namespace millrace
