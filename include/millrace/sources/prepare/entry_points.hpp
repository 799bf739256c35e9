// entry_points: adds entry points (offsets at which the decoder of a payload may start) to the indexes of tar shards.
//
//   const auto make = [](std::string_view field, std::span<const std::byte> payload) -> std::vector<std::byte> {
//     return field == "jpg" ? example::entries_of(payload) : std::vector<std::byte>();
//   };
//   const mr::entry_points all = mr::make_entry_points("train-{000..146}.tar", make);
//   std::printf("%llu fields, %.1f %% of the shards\n", all.fields, 100 * all.share());
//
// Afterwards, shards() delivers the entry points together with their fields (bytes::entries()). The shards do not
// change. Alternatively, the option `entries` of shards() creates entry points at the first start. A call skips shards
// whose indexes already have entry points. Therefore a second call completes an interrupted call. Entry points that
// need more bytes than their payload are omitted.
// Errors: the errors of shards() with an index; io_error if an index cannot be written; the exceptions of `make`.
// Threads: starts threads, which call `make` concurrently.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of make_entry_points().
struct entry_points_options {
  std::string index_folder{};          ///< folder of the index files; by default each index is stored next to its shard
  millrace::storage storage{};         ///< storage of the shards; if it is set, index_folder must be set too
  std::optional<unsigned> threads{};   ///< number of threads; by default one for each usable core
  notice_function notice{};            ///< receives the progress of a long call; by default it is printed to stderr
};

/// Statistics of the entry points in the indexes of shards.
struct entry_points {
  std::uint64_t shards = 0;      ///< shards whose entry points were built, by this call or an earlier call
  std::uint64_t processed = 0;   ///< shards whose entry points this call built
  std::uint64_t samples = 0;     ///< samples of all shards
  /// Damaged samples in the processed shards. They have no entry points.
  std::uint64_t damaged_samples = 0;
  std::uint64_t fields = 0;        ///< fields with entry points
  std::uint64_t bytes = 0;         ///< bytes of all entry points and their checksums
  std::uint64_t shard_bytes = 0;   ///< bytes of the shards

  /// Adds the statistics of other shards.
  entry_points& operator+=(const entry_points& other) noexcept {
    shards += other.shards;
    processed += other.processed;
    samples += other.samples;
    damaged_samples += other.damaged_samples;
    fields += other.fields;
    bytes += other.bytes;
    shard_bytes += other.shard_bytes;
    return *this;
  }
  /// Returns the size of the entry points as a fraction of the shards' size.
  double share() const noexcept {
    return shard_bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(shard_bytes) : 0;
  }
};

namespace detail {

/// Adds the missing entry points to the indexes of these shards.
entry_points add_entry_points(const std::vector<std::string>& shards, const entry_maker& make,
                              const entry_points_options& o);

}   // namespace detail

/// Adds missing entry points to the indexes of shards, and builds missing indexes. `names` is a pattern or a list, as
/// for list_shards(). `make(field, payload)` returns the entry points of a payload, or no bytes.
template <detail::file_names Names = std::vector<std::string>>
entry_points make_entry_points(
    const Names& names,
    const std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)>& make,
    const entry_points_options& options = {}) {
  const detail::shard_listing_options listing{
      .rule = detail::shard_folder_rule, .at = options.storage, .notice = options.notice};
  return detail::add_entry_points(detail::list_files(names, listing), make, options);
}

/// Returns the statistics of one shard's index. If the shard has no valid index, all numbers are 0. Throws io_error if
/// the shard or the index cannot be read.
entry_points entry_points_of(const std::string& shard, const std::string& index_folder = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/sources/prepare/impl/entry_points.inl>
#endif
