// Builds the index of a shard from the headers in the archive, without reading payloads.
//
//   mr::file_source source("train-000.tar");
//   mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
//   if (index.state() == mr::detail::shard_index::shard_state::damaged) std::cerr << index.damage();
//
// Samples, keys, fields and skipped members are the same as in shard_reader. plain_tar reads ordinary archives. If it
// finds an unusual header, tar_reader reads the shard again from the start.
// Errors: io_error of the source; setup_error for a shard that exceeds the limits of an index. Damage is not an error:
// the index contains the description of the damage. An empty file counts as damaged.
// Threads: only one thread at a time may use a source.
#pragma once

#include <millrace/io/index/format/shard_index.hpp>
#include <millrace/io/tar/format/member_name.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Builds the index of a shard from its members, which are added in order. The index has the same samples that
// shard_reader returns.
//
// Errors: setup_error for a shard that exceeds the limits of an index. Threads: not thread-safe. A builder builds one
// index.

/// Collects the columns of one index.
class shard_index_builder {
 public:
  /// Adds the next member to its sample. Counts a member that does not belong to a sample as skipped.
  void add(const tar_member& member);

  /// Marks the payload of the last member as stored in several pieces. The index then has no location for this payload.
  void mark_last_as_pieces() noexcept;

  /// Sets the number of names whose encoding libarchive did not convert (tar_reader::unconverted_names()).
  void count_unconverted_names(std::uint64_t count) noexcept { facts_.counters.unconverted_names = count; }
  /// Sets the number of missing end markers, which is 0 or 1.
  void count_missing_end_markers(std::uint64_t count) noexcept { facts_.counters.missing_end_markers = count; }

  /// If the member `name` begins another sample, completes the open sample. Call this for a damaged member whose name
  /// is intact, instead of add().
  void end_sample_before(std::string_view name);

  /// Returns the index of a complete shard.
  shard_index finish();

  /// Returns the index of a damaged shard, without the sample that was open when the damage was found.
  shard_index finish_damaged(const error& damage);

 private:
  static std::uint32_t block_of(std::uint64_t offset_bytes);
  [[noreturn]] static void too_large();
  static std::uint32_t checked(std::size_t count);

  std::string_view open_key() const noexcept { return std::string_view(keys_).substr(closed_key_bytes()); }
  std::size_t closed_key_bytes() const noexcept { return key_ends_.empty() ? 0 : key_ends_.back(); }

  void open_sample(std::string_view key, std::uint64_t offset_bytes);
  void close_sample();
  void discard_open_sample();
  void count_skipped(const tar_member& member, const member_name& name) noexcept;

  /// Returns the number that identifies a field. Tries the field at the same position in the previous sample first,
  /// because most samples have the same fields in the same order.
  std::uint32_t number_of(std::string_view name);
  shard_index pack(std::string_view damage);

  shard_index::shard_facts facts_{};
  std::vector<std::uint32_t> sample_blocks_, key_ends_, member_ends_, payload_blocks_, payload_sizes_, member_fields_;
  std::string keys_, lowercase_;
  std::vector<std::string> field_names_;
  std::map<std::string, std::uint32_t, std::less<>> fields_;
  bool open_ = false;
  bool last_is_payload_ = false;
};

/// Returns the index of an ordinary shard, or nothing if the shard is not ordinary.
std::optional<shard_index> scan_plain_shard(byte_source& source, block_pool& pool);

/// Returns the index of any shard. Uses tar_reader.
shard_index scan_any_shard(byte_source& source, block_pool& pool);

/// Returns the index of a shard.
shard_index scan_shard(byte_source& source, block_pool& pool);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/format/impl/tar_index_scan.inl>
#endif
