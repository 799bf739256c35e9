// The memory, the open files and the counts of reads, which several sets of shards share.
//
//   const auto shared = std::make_shared<mr::detail::shared_reads>(512);   // up to 512 files stay open between reads
//   for (const auto& set : sets) set->share(shared);
//   shared->report(counts);                                               // events of all sets since the last call
//
// Errors: none. Threads: any thread.
#pragma once

#include <millrace/io/index/entries/entry_files.hpp>
#include <millrace/io/index/set/idle_files.hpp>
#include <millrace/io/index/set/returning_samples.hpp>
#include <millrace/item/bytes.hpp>

#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Objects that sets of shards share.
struct shared_reads {
  explicit shared_reads(std::size_t max_files) : files(max_files) {}

  /// Adds to `counts` the following numbers since the last call: fields with entry points, fields with wrong entry
  /// points, and samples with the key of an earlier sample in their shard.
  void report(event_counts& counts) noexcept {
    entries.report(counts);
    returning.report(counts);
  }

  block_pool pool;
  idle_files files;
  entry_counts entries;
  returning_samples returning;
};

}}}   // namespace millrace::detail
