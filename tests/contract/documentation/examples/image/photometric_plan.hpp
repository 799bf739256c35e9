#include <millrace/image/picture.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, std::span<std::uint8_t> row, mr::scratch& scratch) {
EXAMPLE
}
