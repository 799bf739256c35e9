#include <millrace/sources/shards.hpp>

void use(mr::detail::sample<mr::record>);

void show(const mr::detail::shards_source& source, mr::detail::event_counts& counts) {
EXAMPLE
}
