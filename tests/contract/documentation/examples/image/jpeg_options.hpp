#include <millrace/image/picture.hpp>
void example(const mr::record& r) {
EXAMPLE
}
