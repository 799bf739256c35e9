#include <stdexcept>
void example() {
EXAMPLE
}
