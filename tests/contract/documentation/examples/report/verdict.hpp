#include <millrace/report/knobs.hpp>

#include <cstdio>

void example(const mr::detail::flow_figures& figures) {
EXAMPLE
}
