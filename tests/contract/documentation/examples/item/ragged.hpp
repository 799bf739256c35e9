#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture.hpp>
#include <millrace/item/scalar.hpp>

std::vector<std::uint32_t> tokenize(std::string_view);

EXAMPLE 1
void show(mr::detail::batch_of<&example::words>& b) {
EXAMPLE 2
}
