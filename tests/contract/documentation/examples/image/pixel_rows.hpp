#include <cstdint>
void fill(std::span<std::uint8_t> rgbx, std::size_t row, std::size_t left);
void example(const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE 1
}
void example(std::span<const mr::detail::picture_job> jobs, mr::detail::row_decoder& decoder, mr::scratch& memory) {
EXAMPLE 2
}
