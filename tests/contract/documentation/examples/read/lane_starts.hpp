#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source, const mr::detail::shard_order& order, mr::detail::world mine) {
EXAMPLE
}
