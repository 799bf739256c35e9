#include <millrace/measure/histogram.hpp>
void run_epoch();
void example(const mr::detail::histogram& reads, const mr::detail::distribution& other) {
EXAMPLE
}
