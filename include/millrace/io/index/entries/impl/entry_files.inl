// Defines what entry_files.hpp declares.
#pragma once

#include <millrace/io/index/entries/entry_files.hpp>

#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::unique_ptr<entry_file> entry_files::open(const entries_of_shard& of, const shard_index& index,
                                                              read_meter& meter) {
  const entry_table& table = index.entries();
  if (table.bytes() == 0) return nullptr;
  const millrace::storage local;
  try {
    return std::make_unique<entry_file>(
        entry_file_options{.storage = table.in_storage ? of.files.storage : local,
                           .name = table.in_storage ? of.shard + std::string(index_ending)
                                                    : index_path(of.shard, of.files),
                           .shard = of.number},
        meter, cache_);
  } catch (const io_error&) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
}

MILLRACE_INLINE void entry_files::count(const indexed_reader_counters& now, told_entries& told) noexcept {
  with_entries_.fetch_add(now.with_entries - std::exchange(told.with_entries, now.with_entries),
                          std::memory_order_relaxed);
  refused_.fetch_add(now.entries_refused - std::exchange(told.refused, now.entries_refused),
                     std::memory_order_relaxed);
}

MILLRACE_INLINE void entry_files::report(event_counts& counts) noexcept {
  if (const auto fields = with_entries_.exchange(0, std::memory_order_relaxed))
    counts.count(event_name::fields_with_entries, fields);
  if (const auto fields = refused_.exchange(0, std::memory_order_relaxed))
    counts.count(event_name::fields_refused, fields);
}

MILLRACE_INLINE std::size_t entry_files::limit(const limits& l) {
  // A lane's window lies in one or two chunks.
  const std::uint64_t wanted = 2 * std::min<std::uint64_t>(l.lanes, 1 << 20) * entry_cache::chunk_bytes;
  const auto bytes = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(wanted, least_bytes, std::max(least_bytes, l.max_held_bytes / 2)));
  cache_.limit(bytes);
  return bytes;
}

}}}  // namespace millrace::detail
