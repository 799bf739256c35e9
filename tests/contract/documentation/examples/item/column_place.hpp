#include <millrace/item/ragged.hpp>

void show(const mr::ragged<float, 2>& first, std::byte* base, std::size_t rows, std::size_t used_bytes) {
EXAMPLE
}
