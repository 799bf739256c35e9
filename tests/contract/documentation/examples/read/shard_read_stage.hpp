#include <millrace/sources/shards.hpp>
#include <millrace/work/parallel_segment.hpp>

using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order,
          mr::detail::shard_read_stage_options options, segment& first_segment) {
EXAMPLE
}
