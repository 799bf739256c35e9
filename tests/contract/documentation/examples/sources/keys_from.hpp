#include <millrace/shards.hpp>
void example() {
EXAMPLE
}
