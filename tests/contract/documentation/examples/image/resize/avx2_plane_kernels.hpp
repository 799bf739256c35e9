#include <millrace/image/resize/basic_plane_resizer.hpp>
#ifdef __x86_64__
void example() {
EXAMPLE
}
#endif
