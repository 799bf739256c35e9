#include <millrace/image/picture.hpp>

void show() {
EXAMPLE 1
}
// block 2 is a list of types
