#include <millrace/image/progressive/progressive_header.hpp>
mr::detail::jpeg_refusal example(std::span<const std::uint8_t> file, const mr::detail::progressive_scan& scan,
                                 mr::detail::byte_memory& memory) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return marker > 0 ? none : damaged;
}
