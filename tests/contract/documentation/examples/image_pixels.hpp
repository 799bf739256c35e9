// ---- augment_draws.hpp
void example(mr::rng& random) {
EXAMPLE 1
EXAMPLE 2
EXAMPLE 3
{
EXAMPLE 4
}
}

// ---- photometric_plan.hpp
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>
void example(const mr::record& r, mr::rng& rng, std::span<std::uint8_t> row, mr::scratch& scratch) {
EXAMPLE
}

// ---- photometric_runner.hpp
#include <millrace/item/scratch.hpp>
void example(std::span<const mr::detail::photometric_op> ops, std::vector<std::uint8_t>& row, mr::scratch& scratch) {
EXAMPLE 1
}
void example(std::span<const mr::detail::photometric_op> ops, const mr::detail::rgb_pixels& pixels) {
EXAMPLE 2
}

// ---- box_blur.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- gaussian_blur.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- hue_kernels.hpp
void example(std::uint8_t* row, const std::uint8_t* pixel) {
EXAMPLE
}

// ---- mix_kernels.hpp
void example(const std::uint8_t* first, const std::uint8_t* second, std::size_t count, std::uint8_t* out) {
EXAMPLE
}

// ---- pixel_kernels.hpp
void example(const mr::detail::pending_byte_tables& tables, std::uint8_t* row) {
EXAMPLE
}

// ---- rgb_pixels.hpp
#include <vector>
void example(std::vector<std::uint8_t>& row) {
EXAMPLE
}

// ---- sharpen_kernels.hpp
void example(const mr::detail::rgb_pixels& pixels, std::vector<std::uint8_t>& memory) {
EXAMPLE
}

// ---- unfused.hpp
void example(double a, double b, double c) {
EXAMPLE
}

// ---- vector_kernels.hpp
#include <millrace/simd/cpu_features.hpp>
#if defined __x86_64__ || defined __aarch64__
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}
#endif

// ---- exif_orientation.hpp
#include <cstddef>
#include <span>
void example(std::span<const std::byte> segment) {
EXAMPLE
}

// ---- geometry.hpp
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/item/record.hpp>

std::vector<mr::box> objects;
std::vector<mr::point> skeleton;
void swap_left_and_right(std::vector<mr::point>&);

void example(const mr::record& r, mr::rng& rng) {
EXAMPLE
}

// ---- pair_rule.hpp
void example(mr::rng& random) {
EXAMPLE
  static_cast<void>(how);
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

// ---- row_operation.hpp
#include <cstdint>
#include <vector>
void example(std::vector<std::uint8_t>& pixels, mr::scratch& memory) {
EXAMPLE
}

// ---- basic_plane_resizer.hpp
void example(const mr::detail::plane_resize& job) {
EXAMPLE
}

// ---- column_kernels.hpp
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums) {
EXAMPLE
}

// ---- column_kernels_avx2.hpp
#ifdef __x86_64__
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums) {
EXAMPLE 1
}
#endif

// ---- column_kernels_neon.hpp
#ifdef __aarch64__
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums) {
EXAMPLE
}
#endif

// ---- fancy_upsampling.hpp
void example(const std::uint8_t* nearer, const std::uint8_t* farther, std::size_t count, std::int16_t* sums,
             const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d,
             std::int16_t* ba, std::int16_t* bc, std::int16_t* cb, std::int16_t* cd, const std::uint8_t* y,
             const std::int16_t* sums_u, const std::int16_t* sums_v, std::uint8_t* red, std::uint8_t* green,
             std::uint8_t* blue) {
EXAMPLE
}

// ---- pixel_target.hpp
void example(std::uint8_t* row, float* numbers, const std::uint8_t* line, void* to, float s, float b) {
EXAMPLE
}

// ---- plane_kernels.hpp
#if defined __x86_64__ || defined __aarch64__
void example() {
EXAMPLE
}
#endif

// ---- plane_resampler.hpp
#include <millrace/image/resize/basic_plane_resizer.hpp>
mr::detail::pushed_rows four_rows(std::size_t first);
void example(const mr::detail::tap_table& rows, const mr::detail::tap_table& columns, mr::detail::row_taps& t) {
EXAMPLE
}

// ---- plane_resizer.hpp
void fill(std::uint8_t* pixels);
void example(const mr::detail::plan_axis& y, const mr::detail::plan_axis& x, const mr::detail::jpeg_planes& planes,
             std::uint8_t* row, std::size_t left, std::size_t width) {
EXAMPLE
}

// ---- resize_plan.hpp
void decode(const mr::detail::plane_box& box);
void example() {
EXAMPLE
}

// ---- rgb_rows.hpp
void example(const mr::detail::jpeg_planes& planes) {
EXAMPLE
}

// ---- row_kernels.hpp
void example(const std::int16_t* a, const std::int16_t* b, const mr::detail::row_taps& luma,
             const mr::detail::row_taps& chroma, std::uint8_t* row) {
EXAMPLE
}

// ---- tap_table.hpp
void example(const mr::detail::plan_axis& axis, std::size_t i) {
EXAMPLE 1
}
// block 2 is a formula

// ---- tap_weights_avx2.hpp
#ifdef __x86_64__
void example(mr::detail::tap_table& table, const mr::detail::plan_axis& axis) {
EXAMPLE
}
#endif

// ---- axis_taps.hpp
void recompute(std::uint32_t) {}
void example(const std::uint8_t* bytes, float* numbers, const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}

// ---- axis_warp.hpp
void go_the_plain_way() {}
void example(const mr::detail::warp_source& from, const mr::detail::rgb_pixels& pixels,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}

// ---- vector_warping.hpp
#include <millrace/simd/cpu_features.hpp>
#if defined __x86_64__ || defined __aarch64__
void example(const mr::detail::rgb_pixels& pixels, const mr::detail::affine_map& map) {
EXAMPLE
}
#endif

// ---- warp.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- warp_kernels.hpp
void example(const mr::detail::warp_source& from, const mr::detail::affine_map& map, std::uint8_t* row,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}
