#include <millrace/item/scratch.hpp>
void example(mr::scratch& s) {
EXAMPLE
}
