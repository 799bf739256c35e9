#include <millrace/millrace.hpp>
#include <millrace/device/copying.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}
