#include <millrace/report/verdict.hpp>

void example() {
EXAMPLE
}
