#include <millrace/item/scratch.hpp>

void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}
