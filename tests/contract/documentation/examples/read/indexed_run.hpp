#include <millrace/sources/indexed_shards.hpp>

void show(std::shared_ptr<mr::detail::shard_data> data, mr::detail::world mine, std::string text,
          const mr::detail::indexed_shards_source& source, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch, std::uint64_t epoch,
          std::uint64_t position) {
EXAMPLE
}
