#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void example_of(std::vector<example>& examples) {
EXAMPLE
}
