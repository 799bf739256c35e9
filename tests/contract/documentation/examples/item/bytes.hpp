#include <millrace/item/record.hpp>

void show(const mr::record& record) {
EXAMPLE
}
