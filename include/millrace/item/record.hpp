// record: one sample of a shard, with its key, the name of its shard and its named fields of bytes.
//
//   mr::bytes image = r["jpg;png"];                // the first of these fields in r; data_error if r has neither
//   std::string caption = r.has("txt") ? mr::text(r["txt"]) : "";
//   auto label = r["cls"].as<std::int32_t>();
//   for (const auto& f : r.fields()) std::cout << f.name() << ' ' << f.size() << '\n';
//   for (const auto& f : r.fields("*.jpg;*.png")) std::cout << f.name() << '\n';   // 1.jpg, 2.png, 10.jpg
//
// A record is a one-word handle. Its payloads, names and key are stored in a block. Copying a record only increments a
// reference count. Records that were read together share a block.
// Threads: the same rules as for `bytes`. Lifetime: the record and every `bytes` from it keep the block alive.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// One field, as offsets from the start of the record's block. A record that record_join created has payloads and names
/// in other blocks. An offset to another block is the difference of two addresses, modulo 2^64.
struct field_entry {
  std::size_t name_at, name_size, data_at, data_size;
};

/// The head of a record. The head is stored in the block, after the payloads. Key, shard name and fields are stored as
/// offsets from the start of the block.
struct record_head {
  std::size_t key_at, key_size, shard_at, shard_size, fields_at, field_count;
  std::uint64_t offset_bytes;
  std::size_t head_at;                   // offset of the head itself
  std::size_t held_bytes;                // bytes of the block that count for this record
  mutable std::uint64_t checksums = 0;   // checksum of all payloads; 0 if not computed
  std::size_t next_at = 0;               // offset of the head of the next record; 0 if none

  const std::byte* payload() const noexcept { return reinterpret_cast<const std::byte*>(this) - head_at; }
};

inline block* block_of(const record_head* head) noexcept {
  return reinterpret_cast<block*>(const_cast<std::byte*>(head->payload())) - 1;
}

/// The error for a field that a record does not have.
class missing_field_error : public data_error {
 public:
  using data_error::data_error;

  /// Appends `more` to the message, and replaces the hint with `hint`.
  void explain(std::string_view more, std::string hint) {
    add(more);
    advise(std::move(hint));
  }
};

/// A counted reference to the block of a record, stored as a pointer to the head of the record.
using head_ref = counted_ref<const record_head>;

/// Joins records; defined in item/record_builder.hpp.
struct record_join;

}   // namespace detail

/// One sample of a shard.
class record {
 public:
  /// Creates a record without a sample: empty() is true.
  record() = default;
  /// Creates a handle to the record with this head. The handle keeps the block of the head alive.
  explicit record(const detail::record_head* head) noexcept : head_(head) {}

  /// Returns true if the record has no sample because it was default-constructed or moved from.
  bool empty() const noexcept { return !head_; }

  /// Returns the key; valid while the block lives.
  std::string_view key() const noexcept { return head_ ? text(head_->key_at, head_->key_size) : std::string_view{}; }
  /// Returns the name of the shard; valid while the block lives.
  std::string_view shard() const noexcept {
    return head_ ? text(head_->shard_at, head_->shard_size) : std::string_view{};
  }
  /// Returns the offset of the sample's first member in the uncompressed shard.
  std::uint64_t offset_bytes() const noexcept { return head_ ? head_->offset_bytes : error_location::unknown; }

  /// Returns the number of fields.
  std::size_t field_count() const noexcept { return head_ ? head_->field_count : 0; }
  /// Returns the field with this index, in the order of the shard. `index` must be less than field_count().
  bytes field(std::size_t index) const noexcept;
  /// Returns all fields, in the order of the shard.
  std::vector<bytes> fields() const {
    std::vector<bytes> all;
    all.reserve(field_count());
    for (std::size_t i = 0; i < field_count(); ++i) all.push_back(field(i));
    return all;
  }

  /// The order of fields that match a pattern: by the texts that '*' matches (see fields()), or as in the shard.
  enum class order : std::uint8_t { number, shard };

  /// Returns the fields that match one of `patterns`, which are separated by ';'. The result may be empty. A pattern is
  /// a field name that may contain one '*', which matches any text. By default, the fields are ordered by the texts
  /// that '*' matches, with numbers compared by value: 2.jpg precedes 10.jpg. With order::shard, the fields keep the
  /// order of the shard. "*.jpg" does not match the field "jpg". Throws setup_error if a pattern has a second '*'.
  std::vector<bytes> fields(std::string_view patterns, order by = order::number) const;

  /// Returns one field for each name, in the order of the names. The names can be read from the sample's JSON, for
  /// example. A name may have alternatives, such as "jpg;png". Throws data_error if the record has no field for a name.
  template <class Names>
    requires requires(const Names& names) { std::string_view(*names.begin()); }
  std::vector<bytes> fields(const Names& names) const {
    std::vector<bytes> all;
    for (const std::string_view name : names) all.push_back((*this)[name]);
    return all;
  }
  std::vector<bytes> fields(std::initializer_list<std::string_view> names) const {
    return fields<std::initializer_list<std::string_view>>(names);
  }

  /// Returns true if the record has at least one of the fields in `names`: field names separated by ';'.
  bool has(std::string_view names) const noexcept { return find(names) != none; }

  /// Returns the first field of `names` that the record has. `names` has the same form as in has().
  /// Throws data_error if the record has none of them; the message lists the record's fields.
  bytes operator[](std::string_view names) const {
    const std::size_t index = find(names);
    if (index == none) throw_missing(names);
    return field(index);
  }

  /// Returns the error location of the sample: shard, key and offset.
  error_location where() const;
  /// Returns one number that combines the CRC-32Cs of all payloads in order; 0 if the source did not compute them.
  std::uint64_t checksums() const noexcept { return head_ ? head_->checksums : 0; }
  /// Sets checksums(). Only a source may call this function, before the source delivers the record.
  void set_checksums(std::uint64_t all) noexcept {
    if (head_) head_->checksums = all;
  }
  /// Returns the number of bytes that count as memory of this record. If several records share a block, each counts a
  /// part of the block.
  std::size_t held_bytes() const noexcept { return head_ ? head_->held_bytes : 0; }

  /// Loads into the CPU cache the memory that held_bytes() and checksums() read. Use it for a record that was read long
  /// ago.
  void prefetch_held_bytes() const noexcept {
    if (head_) __builtin_prefetch(&head_->held_bytes);
  }
  /// Loads into the CPU cache the memory that a search for a field reads. Use it for a small record that was read long
  /// ago. Call prefetch_fields() after this memory has reached the cache.
  [[gnu::always_inline]] void prefetch_head() const noexcept {
    if (!head_) return;
    const auto* const head = reinterpret_cast<const std::byte*>(head_.get());
    // The table of the fields is stored before the head.
    for (int line = -1; line <= 1; ++line) __builtin_prefetch(head + line * cache_line_bytes);
  }
  /// Loads into the CPU cache small fields and the beginning of larger fields. Call this function some time after
  /// prefetch_head().
  [[gnu::always_inline]] void prefetch_fields() const noexcept {
    if (!head_) return;
    __builtin_prefetch(block_of(head_.get()), 1);
    for (std::size_t i = 0; i < field_count(); ++i) {
      const std::byte* const data = address(entries()[i].data_at);
      const std::size_t size = std::min<std::size_t>(entries()[i].data_size, prefetched_bytes);
      std::size_t at = 0;
      for (; at < std::min(size, nearest_bytes); at += cache_line_bytes) __builtin_prefetch(data + at);
      for (; at < size; at += cache_line_bytes) __builtin_prefetch(data + at, 0, 2);
      __builtin_prefetch(address(entries()[i].name_at));
    }
  }

 private:
  friend struct detail::record_join;

  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr int cache_line_bytes = 64;
  // The processor itself prefetches a field beyond prefetched_bytes. The first nearest_bytes are prefetched into L1,
  // the others into L2.
  static constexpr std::size_t prefetched_bytes = 2'048, nearest_bytes = 128;

  const std::byte* base() const noexcept { return head_->payload(); }
  const detail::field_entry* entries() const noexcept {
    return reinterpret_cast<const detail::field_entry*>(base() + head_->fields_at);
  }
  const std::byte* address(std::size_t offset) const noexcept {   // pointers must not wrap around, but integers may
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(base()) + offset);
  }
  std::string_view text(std::size_t at, std::size_t size) const noexcept {
    return {reinterpret_cast<const char*>(address(at)), size};
  }

  std::size_t find(std::string_view names) const noexcept;
  [[noreturn]] void throw_missing(std::string_view names) const;
  /// Returns the name of a field, such as "left.jpg", that ends with a dot and one of the alternatives in `names`, such
  /// as "jpg". Returns "" if no field has such a name.
  std::string longer_name(std::string_view names) const;

  detail::head_ref head_;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/record.inl>
#endif
