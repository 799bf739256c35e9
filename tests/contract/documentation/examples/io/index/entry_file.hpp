#include <millrace/io/index/indexed_reader.hpp>
void example(const mr::storage& place, mr::detail::read_meter& meter, mr::byte_source& source,
             mr::detail::shard_index& index, mr::block_pool& pool) {
EXAMPLE
}
