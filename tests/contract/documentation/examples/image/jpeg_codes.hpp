#include <millrace/image/jpeg_transcoder.hpp>

void example(std::span<const std::byte> bytes, const mr::jpeg_symbol_counts& counts) {
EXAMPLE
}
