#include <millrace/work/serial_stages.hpp>

struct clip {};
using next_segment = mr::detail::parallel_segment<mr::detail::fused_maps<clip>, mr::detail::no_expanding_stage>;

void show(const mr::detail::shard_order& order, std::size_t max_bytes, next_segment& next) {
EXAMPLE
}
