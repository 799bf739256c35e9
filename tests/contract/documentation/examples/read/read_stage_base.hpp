#include <millrace/sources/shards.hpp>

extern mr::detail::reorder_buffer<mr::detail::shards_source> buffer;

EXAMPLE
