#include <millrace/item/record.hpp>
void example(const mr::record& record, mr::rng& rng) {
EXAMPLE
}
