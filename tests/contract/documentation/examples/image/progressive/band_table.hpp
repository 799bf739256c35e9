#include <millrace/image/progressive/progressive_header.hpp>
mr::detail::jpeg_refusal example(const mr::detail::progressive_scan& scan, std::uint64_t window, unsigned k) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return value > static_cast<int>(k) ? none : damaged;
}
