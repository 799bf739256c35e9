#include <millrace/read/lane_starts.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/work/parallel_segment.hpp>

using first_segment = mr::detail::parallel_segment<mr::detail::fused_maps<mr::record>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shards_source& source, const mr::detail::lane_starts& at, first_segment& segment) {
EXAMPLE
}
