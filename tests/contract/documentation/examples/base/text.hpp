#include <millrace/base/crc32c.hpp>
void example(std::string_view text) {
EXAMPLE
}
