#include <millrace/image/baseline/jpeg_plane_decoder.hpp>
void by_libjpeg(const mr::detail::jpeg_planes_request& ask, mr::detail::jpeg_refusal why);
void example(std::span<const std::byte> file, mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}
