#include <millrace/image/libjpeg/jpeg_segments.hpp>
void example() {
EXAMPLE
}
