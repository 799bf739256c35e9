#include <millrace/adapt/remote.hpp>
#include <millrace/millrace.hpp>
void example() {
EXAMPLE
}
