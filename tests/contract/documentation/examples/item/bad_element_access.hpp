#include <millrace/item/tensor_view.hpp>
#include <cstdio>

void show(mr::tensor_view<int, 1> labels) {
EXAMPLE
}
