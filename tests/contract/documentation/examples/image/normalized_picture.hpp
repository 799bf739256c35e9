#include <millrace/item/record.hpp>
#include <millrace/item/scalar.hpp>
EXAMPLE 1
void show(const mr::record& r, mr::rng& rng) {
EXAMPLE 2
}
