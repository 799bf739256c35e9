#include <cstdio>
namespace example {
std::vector<std::byte> entries_of(std::span<const std::byte> payload);
}
void example_of() {
EXAMPLE
}
