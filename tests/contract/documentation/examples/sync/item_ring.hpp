#include <millrace/item/sample.hpp>
void example(std::uint64_t ticket, mr::detail::sample<mr::record> s) {
EXAMPLE
}
