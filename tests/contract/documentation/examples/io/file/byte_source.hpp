#include <memory>
#include <vector>
void example(std::uint64_t offset_bytes, std::vector<std::byte>& buffer) {
EXAMPLE 1
}
EXAMPLE 2
