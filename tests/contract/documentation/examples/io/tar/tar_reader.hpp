#include <vector>
void example(std::vector<std::byte>& buffer, mr::block_pool& pool) {
EXAMPLE
}
