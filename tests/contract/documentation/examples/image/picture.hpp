#include <millrace/item/record.hpp>

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}
