#include <millrace/millrace.hpp>
struct example { std::array<float, 8> features; };
void step(mr::tensor_view<const float, 2> features, mr::stream_view stream);
void example_of(std::vector<example>& examples) {
EXAMPLE
}
