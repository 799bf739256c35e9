#include <millrace/sources/shards.hpp>

void show(const mr::detail::shards_source& source) {
EXAMPLE
}
