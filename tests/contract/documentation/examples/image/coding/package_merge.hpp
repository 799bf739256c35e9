#include <vector>

void example() {
EXAMPLE
}
