// ---- any_picture.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, const mr::picture_reader& webp) {
EXAMPLE
}

// ---- augment_draws.hpp
void example(mr::rng& random) {
EXAMPLE
}

// ---- beta_draw.hpp
void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(share);
}

// ---- exif_orientation.hpp
#include <cstddef>
#include <span>
void example(std::span<const std::byte> segment) {
EXAMPLE
}

// ---- geometry.hpp
#include <millrace/image/label_map.hpp>
#include <millrace/image/picture.hpp>
#include <millrace/item/record.hpp>

std::vector<mr::box> objects;
std::vector<mr::point> skeleton;
void swap_left_and_right(std::vector<mr::point>&);

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- jpeg_codes.hpp
#include <millrace/image/jpeg_transcoder.hpp>

void example(std::span<const std::byte> bytes, const mr::jpeg_symbol_counts& counts) {
EXAMPLE
}

// ---- jpeg_encoder.hpp
void example(const mr::image& pixels, const mr::image& gray_pixels) {
EXAMPLE
}

// ---- jpeg_entries.hpp
void example(std::span<const std::byte> file) {
EXAMPLE
}

// ---- jpeg_header.hpp
void example(std::span<const std::byte> bytes) {
EXAMPLE
}

// ---- jpeg_options.hpp
#include <millrace/image/picture.hpp>
void example(const mr::record& r) {
EXAMPLE
}

// ---- jpeg_transcoder.hpp
void example(std::span<const std::byte> bytes, const mr::jpeg_codes& codes) {
EXAMPLE
}

// ---- label_map.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/image/picture.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels, &example::classes>& b) {
EXAMPLE 2
}

// ---- label_source.hpp
#include <millrace/item/scratch.hpp>

void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}

// ---- normalized_picture.hpp
#include <millrace/item/record.hpp>
#include <millrace/item/scalar.hpp>
EXAMPLE 1
void show(const mr::record& r, mr::rng& rng) {
EXAMPLE 2
}

// ---- padded_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels, &example::size>& b) {
EXAMPLE 2
}

// ---- pair_rule.hpp
void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(how);
}

// ---- photometric_plan.hpp
#include <millrace/image/picture.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, std::span<std::uint8_t> row, mr::scratch& scratch) {
EXAMPLE
}

// ---- picture.hpp
#include <millrace/item/record.hpp>

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- picture_format.hpp
#include <millrace/image/picture.hpp>
#include <millrace/image/picture_job.hpp>

namespace {

void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header,
          const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE
}

}  // namespace

// ---- picture_group.hpp
#include <millrace/image/picture.hpp>

#include <vector>

std::span<std::uint8_t> row_of(const mr::picture& p);

void example(mr::scratch& scratch, const std::vector<mr::picture>& views) {
EXAMPLE
}

// ---- picture_job.hpp
void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header, std::byte* row,
          mr::scratch& memory) {
EXAMPLE
}

// ---- picture_renderer.hpp
void example(const mr::bytes& file, const mr::jpeg_options& o, const mr::jpeg_header& h,
             const mr::detail::resize_plan& plan, const mr::detail::pixel_target& t, mr::scratch& scratch) {
EXAMPLE
}

// ---- pixel_rows.hpp
#include <cstdint>
void fill(std::span<std::uint8_t> rgbx, std::size_t row, std::size_t left);
void example(const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE 1
}
void example(std::span<const mr::detail::picture_job> jobs, mr::detail::row_decoder& decoder, mr::scratch& memory) {
EXAMPLE 2
}

// ---- png.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- png_encoder.hpp
void example(const mr::image& pixels) {
EXAMPLE
}

// ---- png_labels.hpp
#include <millrace/image/label_source.hpp>
void example(const mr::bytes& field, mr::scratch& scratch) {
EXAMPLE
}

// ---- pnm.hpp
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- pnm_header.hpp
void use(std::size_t width, std::size_t height, std::span<const std::byte> samples);

void example(std::span<const std::byte> file) {
EXAMPLE
}

// ---- ragged_picture.hpp
#include <millrace/deliver/batch.hpp>
#include <millrace/item/record.hpp>

EXAMPLE 1
void show(mr::detail::batch_of<&example::pixels>& b) {
EXAMPLE 2
}

// ---- random_crop.hpp
void example(mr::rng& random) {
EXAMPLE
}

// ---- random_erase.hpp
void example(std::span<mr::f16> numbers, mr::rng& random) {
EXAMPLE
  static_cast<void>(as_torchvision);
}

// ---- rgba_picture.hpp
#include <millrace/image/png.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/scalar.hpp>

EXAMPLE

// ---- row_finisher.hpp
#include <millrace/image/picture_renderer.hpp>
void example(const mr::detail::picture_job& job, const mr::detail::jpeg_planes& planes,
             mr::detail::plane_resizer& resizer, mr::scratch& memory) {
EXAMPLE
}

// ---- row_operation.hpp
#include <cstdint>
#include <vector>
void example(std::vector<std::uint8_t>& pixels, mr::scratch& memory) {
EXAMPLE
}

// ---- shared_requests.hpp
#include <millrace/image/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/picture_job.hpp>
void render(std::size_t job, const mr::detail::jpeg_planes& planes);
void example(std::span<const mr::detail::picture_job> jobs, const mr::detail::jpeg_planes_request& request,
             mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}

// ---- timm_levels.hpp
void example(mr::rng& random) {
EXAMPLE
}
