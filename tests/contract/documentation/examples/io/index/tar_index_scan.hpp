#include <iostream>
void example(mr::block_pool& pool) {
EXAMPLE
}
