#include <millrace/image/baseline/jpeg_plane_decoder.hpp>

void example(std::span<const std::byte> file, mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}
