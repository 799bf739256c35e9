#include <millrace/image/picture.hpp>

#include <vector>

std::span<std::uint8_t> row_of(const mr::picture& p);

void example(mr::scratch& scratch, const std::vector<mr::picture>& views) {
EXAMPLE
}
