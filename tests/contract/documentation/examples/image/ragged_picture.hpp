#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels>& b) {
EXAMPLE 2
}
