// Builds the entry points (positions where a decoder may start) of all payloads of a shard, on several threads.
//
//   const mr::storage local;
//   const mr::detail::entries_job job{.storage = local, .shard = shard, .build = build, .threads = 4};
//   mr::detail::built_entries result = mr::detail::build_entries(job, index);   // index.entries() has their locations
//   mr::detail::store_index(path, index, &result.pieces);
//
// build_entries() reads all payloads, and also records their checksums in the index. A sample that is unreadable or
// does not match its checksum gets no entry points. built_entries::unreadable counts such samples. Entry points that
// need more bytes than their payload are omitted. If the entry points of a shard need more than 4 GiB together, those
// that do not fit are omitted.
// Memory: all entry points of the shard until they are stored, and a few samples for each thread.
// Errors: io_error if the shard cannot be read, and exceptions of `build`. Threads: starts threads and waits for them.
// These threads call `build` concurrently.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/io/index/format/index_file.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A function that returns the entries (encoded entry points, see shard_index.hpp) of a payload. The result is empty if
/// the payload has no entries.
using entry_maker = std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)>;

/// The shard, and the function that builds the entries of its payloads.
struct entries_job {
  const millrace::storage& storage;
  const std::string& shard;
  const entry_maker& build;
  unsigned threads = 1;
  /// Called after each piece of work, by any thread, with the numbers of samples and bytes of this piece.
  std::function<void(std::uint64_t samples, std::uint64_t payload_bytes)> done{};
};

/// The result of build_entries().
struct built_entries {
  entry_pieces pieces{};
  std::uint64_t unreadable = 0;   ///< number of unreadable samples
};

/// Builds all entries, and stores their locations in index.entries().
built_entries build_entries(const entries_job& job, shard_index& index);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/entries/impl/entries_build.inl>
#endif
