// ---- any_picture.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, const mr::picture_reader& webp) {
EXAMPLE
}

// ---- interleaved.hpp
#include <millrace/item/record.hpp>

std::vector<std::uint32_t> tokenize(const mr::bytes& text);
EXAMPLE

// ---- label_map.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::batch_of<&example::pixels, &example::classes>& b) {
EXAMPLE 2
}
void read(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE 3
}

// ---- u16_picture.hpp
#include <millrace/image/png/png.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(const mr::record& r) {
EXAMPLE 2
}

// ---- normalized_picture.hpp
#include <millrace/item/record.hpp>
EXAMPLE 1
void show(const mr::record& r, mr::rng& rng) {
EXAMPLE 2
}

// ---- mosaic_labels.hpp
EXAMPLE

// ---- mosaic_picture.hpp
#include <millrace/item/tensor/ragged.hpp>

EXAMPLE

// ---- padding.hpp
#include <millrace/image/picture/picture.hpp>
mr::picture example(const mr::picture& p) {
  return
EXAMPLE
}

// ---- pixel_rules.hpp
#include <millrace/image/picture/picture.hpp>
void example(const mr::picture& p) {
EXAMPLE
}

// ---- padded_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::batch_of<&example::pixels, &example::size>& b) {
EXAMPLE 2
}

// ---- picture.hpp
#include <millrace/image/png/png.hpp>
#include <millrace/item/record.hpp>

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- patch_list.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/tensor/ragged.hpp>

EXAMPLE 1
void show(mr::batch_of<&document::patches, &document::grids>& b) {
EXAMPLE 2
}

// ---- picture_list.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::batch_of<&document::images>& b) {
EXAMPLE 2
}

// ---- ragged_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::batch_of<&example::pixels>& b) {
EXAMPLE 2
}

// ---- rgba_picture.hpp
#include <millrace/image/png/png.hpp>
#include <millrace/item/record.hpp>

EXAMPLE

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
                                   const std::uint8_t* end) {
EXAMPLE 1
  return mr::detail::inflate_status::more;
}
void example(const mr::detail::deflate_codes& codes) {
EXAMPLE 2
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
EXAMPLE 1
}
void example(const mr::detail::png_header& header, const std::uint8_t* stored, std::uint8_t* memory) {
EXAMPLE 2
}

// ---- png_encoder.hpp
void example(const mr::image& pixels) {
EXAMPLE
}

// ---- png_rows.hpp
void use(const std::uint8_t* row);
void example(std::span<const std::byte> file, const mr::detail::png_header& header) {
EXAMPLE
}

// ---- unfilter.hpp
void example(const std::uint8_t* filtered, const std::uint8_t* row_before, std::uint8_t* row) {
EXAMPLE
}

// ---- pnm.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- picture_job.hpp
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/render/picture_renderer.hpp>

void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header, std::byte* row,
          mr::scratch& memory) {
EXAMPLE 1
EXAMPLE 2
}
void fill(std::span<std::uint8_t> rgbx, std::size_t row, std::size_t left);
void show(const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE 3
}
void show(std::span<const mr::detail::picture_job> jobs, mr::detail::row_decoder& decoder, mr::scratch& memory) {
EXAMPLE 4
}
void show(const mr::detail::picture_job& job, const mr::detail::jpeg_planes& planes,
          mr::detail::plane_resizer& resizer, mr::scratch& memory) {
EXAMPLE 5
}

// ---- picture_renderer.hpp
void example(const mr::bytes& file, const mr::jpeg_options& o, const mr::jpeg_header& h,
             const mr::detail::resize_plan& plan, const mr::detail::pixel_target& t, mr::scratch& scratch) {
EXAMPLE 1
}
void render(std::size_t job, const mr::detail::jpeg_planes& planes);
void example(std::span<const mr::detail::picture_job> jobs, const mr::detail::jpeg_planes_request& request,
             mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE 2
}
