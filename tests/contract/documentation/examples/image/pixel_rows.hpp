#include <cstdint>
void fill(std::span<std::uint8_t> rgbx, std::size_t row, std::size_t left);
void example(const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE
}
