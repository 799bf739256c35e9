#include <cstddef>
#include <span>
void example(std::span<const std::byte> segment) {
EXAMPLE
}
