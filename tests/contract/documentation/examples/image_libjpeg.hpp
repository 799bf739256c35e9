// ---- jpeg_coefficients.hpp
void example(std::span<const std::byte> file, std::span<const std::byte> rewritten) {
EXAMPLE
}

// ---- jpeg_decoder.hpp
#include <millrace/image/resize/plane_resizer.hpp>
void example(std::span<const std::byte> bytes, mr::detail::plane_resizer& sink) {
EXAMPLE
}

// ---- jpeg_input.hpp
EXAMPLE

// ---- jpeg_output.hpp
EXAMPLE

// ---- jpeg_segments.hpp
#include <vector>
void example(std::span<const std::byte> file, std::vector<std::byte>& kept) {
EXAMPLE
}

// ---- jpeg_symbols.hpp
void example(mr::detail::jpeg_coefficients& coefficients, mr::detail::jpeg_symbol_counts& counts) {
EXAMPLE
}

// ---- libjpeg.hpp
#include <millrace/image/libjpeg/jpeg_segments.hpp>
void example() {
EXAMPLE
}
