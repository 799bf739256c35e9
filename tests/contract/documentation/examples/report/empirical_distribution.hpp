#include <millrace/measure/flow_figures.hpp>

void example(const mr::detail::flow_figures& window, mr::rng& random) {
EXAMPLE
}
