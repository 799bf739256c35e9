#include <millrace/io/file/byte_source.hpp>
void example() {
EXAMPLE
}
