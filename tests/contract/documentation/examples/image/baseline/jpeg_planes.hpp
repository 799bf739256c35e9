#include <millrace/image/baseline/jpeg_planes_request.hpp>
void example(const mr::detail::jpeg_planes_result& result, std::size_t row, std::size_t column) {
EXAMPLE
}
