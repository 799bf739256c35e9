#include <millrace/measure/event_counts.hpp>

#include <cstdio>

void show(mr::detail::event_counts& events) {
EXAMPLE
}
