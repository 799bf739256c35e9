#include <millrace/report/text_report.hpp>

#include <cstdio>

void example(const mr::detail::flow_figures& window, mr::detail::timeline events) {
EXAMPLE
}
