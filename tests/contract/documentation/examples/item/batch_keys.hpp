#include <millrace/item/sample.hpp>
#include <span>

void show(const mr::detail::sample<int>& s, std::size_t row, std::size_t rows) {
EXAMPLE
}
