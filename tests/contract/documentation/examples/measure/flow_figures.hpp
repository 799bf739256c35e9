#include <millrace/report/verdict.hpp>
void example(const mr::detail::flow_figures& now, const mr::detail::flow_figures& before) {
EXAMPLE
}
