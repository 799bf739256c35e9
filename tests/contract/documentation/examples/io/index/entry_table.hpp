#include <millrace/io/index/shard_index.hpp>
void example(const mr::detail::shard_index& index, std::uint32_t member) {
EXAMPLE
}
