#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(const mr::record&);

void show() {
EXAMPLE
}
