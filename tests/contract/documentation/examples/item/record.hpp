#include <millrace/item/scalar.hpp>
#include <iostream>

void show(const mr::record& r) {
EXAMPLE
}
