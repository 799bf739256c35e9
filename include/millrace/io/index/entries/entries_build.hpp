// Makes the entry points of all payloads of a shard, on several threads.
//
//   const mr::storage local;
//   const mr::detail::entries_job job{.storage = local, .shard = shard, .make = make, .threads = 4};
//   mr::detail::made_entries made = mr::detail::make_entries(job, index);   // index.entries() says where each will lie
//   mr::detail::keep_index(path, index, &made.pieces);
//
// All payloads are read, so that the index also learns all checksums. A sample that cannot be read, or that is not what
// its checksum says, has no entries, and is counted. Entries longer than their payload are left out: they do not pay.
// So are those behind the first 4 GiB of a shard.
// Memory: all entries of the shard until they are kept, and a few samples for each thread.
// Errors: io_error if the shard cannot be read; whatever `make` throws. Threads: starts its own and waits for them;
// `make` is called by all of them at the same time.
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

/// Returns the entries of a payload; none for a field that has none.
using entry_maker =
    std::function<std::vector<std::byte>(std::string_view field, std::span<const std::byte> payload)>;

/// The shard, and the maker of its entries.
struct entries_job {
  const millrace::storage& storage;
  const std::string& shard;
  const entry_maker& make;
  unsigned threads = 1;
  /// Told of each piece of work that is done; by any thread.
  std::function<void(std::uint64_t samples, std::uint64_t payload_bytes)> done{};
};

/// The result of make_entries().
struct made_entries {
  entry_pieces pieces{};
  std::uint64_t unreadable = 0;   ///< samples
};

/// Makes all entries and sets index.entries().
made_entries make_entries(const entries_job& job, shard_index& index);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/index/entries/impl/entries_build.inl>
#endif
