#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, std::string text, mr::detail::shard_read_stage_options options,
          mr::detail::sample_sink<mr::record>& sink, mr::detail::ready_batch& batch) {
EXAMPLE
}
