// record_builder: builds a record field by field in one recycled block, for sources that create records.
//
//   mr::record_builder build(pool);
//   build.begin("train-000.tar", "n01/0001", offset_bytes);
//   std::span<std::byte> buffer = build.add_field("jpg", size_bytes);   // fill it before the next call
//   mr::record r = build.finish();
//
// Threads: not thread-safe. Errors: std::bad_alloc only. After finish(), begin() starts the next record. begin() also
// discards an incomplete record.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/item/record.hpp>

#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Builds records, one after another.
class record_builder {
 public:
  /// Allocates its blocks from `pool`, which must outlive the builder.
  explicit record_builder(block_pool& pool);

  /// Begins a record; discards an unfinished record.
  void begin(std::string_view shard, std::string_view key, std::uint64_t offset_bytes);

  /// Returns true if the record already has a field of this name.
  bool has(std::string_view name) const noexcept;
  /// Returns the key of the record.
  std::string_view key() const noexcept { return key_; }
  /// Returns the number of fields so far.
  std::size_t field_count() const noexcept { return fields_.size(); }

  /// Adds a field and returns its buffer of `size_bytes`; the buffer is valid until the next call.
  std::span<std::byte> add_field(std::string_view name, std::size_t size_bytes);

  /// Sets the JPEG entry points (positions where a decoder may start) of the field that was added last.
  /// bytes::entries() returns them. An empty field has no entry points. The buffer of the field becomes invalid.
  void set_entries(std::span<const std::byte> entries);

  /// Removes the field that was added last, for example after its bytes could not be read.
  void drop_last_field();

  /// Returns the record, with all fields added since begin().
  record finish();

 private:
  static std::size_t aligned(std::size_t at) noexcept { return (at + 15) & ~std::size_t{15}; }

  std::size_t largest_field() const noexcept;

  /// Grows the block so that it has space for `size_bytes` more bytes, and for the names and tables that finish()
  /// appends. Also reserves space for small fields that follow a large field, so that the large field is not copied
  /// again.
  void ensure_space(std::size_t size_bytes);

  block_pool* pool_;
  detail::block_ref block_;
  std::string shard_, key_, names_;
  std::vector<detail::field_entry> fields_;
  std::vector<detail::entries_place> entries_;
  std::uint64_t offset_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t tail_hint_bytes_ = 0;
};

namespace detail {

/// Joins several records (the parts) to one record. The joined record has the fields of all parts in order, and the
/// key, shard and offset of the first part. The joined record shares the blocks of all parts. Therefore no payload is
/// copied.
/// Cost: one small block, about 0.1 us.
struct record_join {
  std::span<const record> parts;                ///< the first must not be empty; an empty record adds no fields
  std::span<const std::string> prefixes = {};   ///< prefix of the field names of each part; missing prefixes are empty

  /// Returns the joined record, in a block of `pool`.
  record run(block_pool& pool) const;

 private:
  std::string_view prefix(std::size_t part) const noexcept {
    return part < prefixes.size() ? std::string_view(prefixes[part]) : std::string_view();
  }
};

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/record_builder.inl>
#endif
