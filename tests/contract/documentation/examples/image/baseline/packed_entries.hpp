#include <millrace/image/baseline/mcu_stream.hpp>

void example(const std::vector<mr::detail::jpeg_entry>& entries, mr::detail::mcu_stream& stream, std::size_t n,
             std::size_t h) {
EXAMPLE
}
