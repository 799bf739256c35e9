#include <millrace/image/baseline/mcu_stream.hpp>

void example(mr::detail::mcu_stream& stream) {
EXAMPLE
}
