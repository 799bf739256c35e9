#include <vector>
void example(std::span<const std::byte> file, std::vector<std::byte>& kept) {
EXAMPLE
}
