#include <cstdio>

// block 2 is a report's first lines
void example(const mr::detail::flow_figures& window) {
EXAMPLE 1
}
