#include <millrace/sources/indexed_shards.hpp>

void show(const mr::detail::indexed_shards_source& source, mr::detail::world mine, std::string text) {
EXAMPLE
}
