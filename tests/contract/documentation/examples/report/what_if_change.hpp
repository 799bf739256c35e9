#include <millrace/report/what_if.hpp>

void example(const mr::detail::flow_figures& window) {
EXAMPLE
}
