#include <stdexcept>
void example(std::span<const std::byte> input, std::span<std::byte> buffer) {
EXAMPLE
}
