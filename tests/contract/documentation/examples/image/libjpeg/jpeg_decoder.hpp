#include <millrace/image/resize/plane_resizer.hpp>
void example(std::span<const std::byte> bytes, mr::detail::plane_resizer& sink) {
EXAMPLE
}
