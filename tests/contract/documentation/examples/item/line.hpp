#include <millrace/text.hpp>

void show(const mr::line& one) {
EXAMPLE
}
