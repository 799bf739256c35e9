#include <millrace/sources/shards.hpp>

mr::detail::open_shard<mr::detail::shards_source>& shard_for(std::size_t thread);
void pass_on(std::vector<mr::detail::sample<mr::record>>& samples, const std::exception_ptr& error);

EXAMPLE
