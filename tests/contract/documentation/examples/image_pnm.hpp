// ---- pnm.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- pnm_header.hpp
void use(std::size_t width, std::size_t height, std::span<const std::byte> samples);

void example(std::span<const std::byte> file) {
EXAMPLE
}
