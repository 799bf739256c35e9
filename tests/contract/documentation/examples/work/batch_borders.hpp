#include <millrace/read/planned_run.hpp>

void show(mr::detail::batch_ring& ring, const mr::detail::planned_run* order) {
EXAMPLE
}
