#include <millrace/item/scratch.hpp>
void example(std::span<const mr::detail::photometric_op> ops, std::vector<std::uint8_t>& row, mr::scratch& scratch) {
EXAMPLE
}
