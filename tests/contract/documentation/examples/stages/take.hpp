#include <millrace/text.hpp>

bool is_long(const mr::line&);

void show() {
EXAMPLE
}
