#include <cstdint>
#include <vector>
void example(std::vector<std::uint8_t>& pixels, mr::scratch& memory) {
EXAMPLE
}
