#include <millrace/shards.hpp>

void show() {
EXAMPLE
}
