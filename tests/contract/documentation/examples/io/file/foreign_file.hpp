#include <millrace/base/error.hpp>
void example(std::string_view front) {
EXAMPLE
}
