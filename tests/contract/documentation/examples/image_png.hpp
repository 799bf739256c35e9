// ---- adler.hpp
void example(std::span<const std::uint8_t> data, std::span<const std::uint8_t> first_half,
             std::span<const std::uint8_t> second_half) {
EXAMPLE
}

// ---- deflate_codes.hpp
constexpr int damaged = 1;
int example(std::span<const std::uint8_t> literal_lengths, std::span<const std::uint8_t> distance_lengths,
            std::uint64_t bits) {
EXAMPLE
  return static_cast<int>(e);
}

// ---- inflate.hpp
mr::detail::inflate_status example(mr::detail::inflate_input& pieces, std::uint8_t* memory,
                                   const std::uint8_t* wanted) {
EXAMPLE
  return mr::detail::inflate_status::more;
}

// ---- inflate_loop.hpp
void example(const mr::detail::deflate_codes& codes) {
EXAMPLE
}

// ---- png.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- png_decoder.hpp
void use(const std::uint8_t* row, std::size_t bytes);
void use_row(std::size_t y, std::span<const std::uint8_t> row);
void example(std::span<const std::byte> bytes, const mr::detail::png_region& region,
             const mr::detail::png_pixel_options& options) {
EXAMPLE
}

// ---- png_encoder.hpp
void example(const mr::image& pixels) {
EXAMPLE
}

// ---- png_header.hpp
void example(std::span<const std::byte> file) {
EXAMPLE
}

// ---- png_pixels.hpp
void example(const mr::detail::png_header& header, const std::uint8_t* stored, std::uint8_t* memory) {
EXAMPLE
}

// ---- png_rows.hpp
void use(const std::uint8_t* row);
void example(std::span<const std::byte> file, const mr::detail::png_header& header) {
EXAMPLE
}

// ---- rgb_to_rgbx_avx2.hpp
void copy_one_by_one();
void example(const std::uint8_t* row, std::uint8_t* memory) {
EXAMPLE
}

// ---- unfilter.hpp
void example(const std::uint8_t* filtered, const std::uint8_t* row_before, std::uint8_t* row) {
EXAMPLE
}

// ---- unfilter_avx2.hpp
void example(const std::uint8_t* filtered, const std::uint8_t* row_before, std::uint8_t* row,
             const mr::detail::filtered_row* four_rows) {
EXAMPLE
}
