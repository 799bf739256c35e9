#include <millrace/sources/shards.hpp>

extern std::mutex mutex;
extern mr::detail::reorder_buffer<mr::detail::shards_source> buffer;
mr::detail::open_shard<mr::detail::shards_source>* next_shard(std::size_t thread);

EXAMPLE
