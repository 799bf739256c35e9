// Definitions for entry_points.hpp.
#pragma once

#include <millrace/sources/prepare/entry_points.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE entry_points entry_points_in(const shard_index& index) noexcept {
  const entry_table& entries = index.entries();
  return {.shards = entries.built,
          .samples = index.samples(),
          .fields = entries.fields(),
          .bytes = entries.bytes(),
          .shard_bytes = index.identity().size_bytes};
}

MILLRACE_INLINE entry_points add_entry_points(const std::vector<std::string>& shards, const entry_maker& make,
                                              const entry_points_options& o) {
  const index_file_options files{.cache_folder = o.index_folder, .storage = o.storage};
  if (!files.can_store())
    throw setup_error("indexes of shards in a remote storage cannot be saved next to the shards",
                      "Set entry_points_options::index_folder, or copy the shards to the local disk first");
  notice_outlet notices(o.notice);
  const shard_indexes all = build_indexes(
      shards, {.files = files, .threads = o.threads.value_or(0), .notices = &notices, .entries = make});
  if (all.counts.not_stored > 0)
    throw io_error(std::to_string(all.counts.not_stored) + " of " + std::to_string(shards.size()) +
                       " indexes cannot be saved; the first error: " + all.store_failure,
                   "Check the folder of the indexes, or set entry_points_options::index_folder to another folder");
  entry_points total{.processed = all.counts.entries_built, .damaged_samples = all.counts.entries_unreadable};
  for (const auto& index : all.indexes) total += entry_points_in(*index);
  return total;
}

}   // namespace detail

MILLRACE_INLINE entry_points entry_points_of(const std::string& shard, const std::string& index_folder) {
  const detail::loaded_index loaded = detail::load_index(detail::index_path(shard, {.cache_folder = index_folder}),
                                                         detail::identify_shard(shard));
  return loaded.state == detail::index_file_state::good ? detail::entry_points_in(loaded.index) : entry_points();
}

}}   // namespace millrace
