// Builds the entry points (entry_table.hpp) of all payloads of a shard, on several threads.
//
//   const mr::storage local;
//   const mr::detail::entries_job job{.storage = local, .shard = shard, .build = build, .threads = 4};
//   mr::detail::built_entries result = mr::detail::build_entries(job, index);   // index.entries() has their locations
//   mr::detail::store_index(path, index, &result.pieces);
//
// All payloads are read, and therefore all their checksums are also recorded in the index. A sample that is unreadable
// or does not match its checksum gets no entries, and is counted. Entries longer than their payload are omitted,
// because they save nothing. Entries beyond the first 4 GiB of a shard are also omitted.
// Memory: all entries of the shard until they are stored, and a few samples for each thread.
// Errors: io_error if the shard cannot be read; exceptions of `build`. Threads: starts its own threads, which call
// `build` concurrently, and waits for them.
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

/// A function that returns the entries of a payload; empty if the payload has no entries.
using entry_maker =
    std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)>;

/// The shard, and the function that builds its entries.
struct entries_job {
  const millrace::storage& storage;
  const std::string& shard;
  const entry_maker& build;
  unsigned threads = 1;
  /// Called after each piece of work, by any thread.
  std::function<void(std::uint64_t samples, std::uint64_t payload_bytes)> done{};
};

/// The result of build_entries().
struct built_entries {
  entry_pieces pieces{};
  std::uint64_t unreadable = 0;   ///< number of unreadable samples
};

/// Builds all entries and sets index.entries().
built_entries build_entries(const entries_job& job, shard_index& index);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/entries/impl/entries_build.inl>
#endif
