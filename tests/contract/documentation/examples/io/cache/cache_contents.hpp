#include <millrace/base/error.hpp>
#include <cstdio>
void example() {
EXAMPLE
}
