#include <vector>
void example(std::vector<std::uint8_t>& row) {
EXAMPLE
}
