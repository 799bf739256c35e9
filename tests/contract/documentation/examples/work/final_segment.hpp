#include <cstdio>
void show(mr::detail::final_segment& last) {
EXAMPLE
}
