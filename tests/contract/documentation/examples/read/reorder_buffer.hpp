#include <millrace/sources/shards.hpp>
#include <millrace/work/parallel_segment.hpp>

void wake_readers();
using segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, segment& first_segment,
          std::vector<mr::detail::sample<mr::record>> samples) {
EXAMPLE
}
