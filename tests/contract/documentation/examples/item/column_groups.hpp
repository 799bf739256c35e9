#include <millrace/image/picture.hpp>

void example() {
EXAMPLE
}
