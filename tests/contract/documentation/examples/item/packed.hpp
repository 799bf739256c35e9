#include <millrace/text.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

void show() {
EXAMPLE
}
