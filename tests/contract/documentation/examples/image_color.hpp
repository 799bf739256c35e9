// ---- axis_taps.hpp
void make_again(std::uint32_t) {}
void example(const std::uint8_t* bytes, float* numbers, const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}

// ---- axis_taps_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}
#endif

// ---- axis_warp.hpp
void go_the_plain_way() {}
void example(const mr::detail::warp_source& from, const mr::detail::rgb_pixels& pixels,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}

// ---- basic_photometric_runner.hpp
void example(std::span<const mr::detail::photometric_op> ops, const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- box_blur.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- box_blur_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::rgb_pixels& pixels, const mr::detail::box_weights& weights) {
EXAMPLE
}
#endif

// ---- gaussian_blur.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- gaussian_blur_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}
#endif

// ---- hue_kernels.hpp
void example(std::uint8_t* row, const std::uint8_t* pixel) {
EXAMPLE
}

// ---- hue_kernels_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::uint8_t* row) {
EXAMPLE
}
#endif

// ---- mix_kernels.hpp
void example(const std::uint8_t* first, const std::uint8_t* second, std::size_t count, std::uint8_t* out) {
EXAMPLE
}

// ---- mix_kernels_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::span<const mr::detail::mixed_bytes> parts, std::size_t count, std::uint8_t* out) {
EXAMPLE
}
#endif

// ---- photometric_runner.hpp
#include <millrace/item/scratch.hpp>
void example(std::span<const mr::detail::photometric_op> ops, std::vector<std::uint8_t>& row, mr::scratch& scratch) {
EXAMPLE
}

// ---- pixel_kernels.hpp
void example(const mr::detail::pending_tables& tables, std::uint8_t* row) {
EXAMPLE
}

// ---- pixel_kernels_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::uint8_t* row) {
EXAMPLE
}
#endif

// ---- rgb_pixels.hpp
#include <vector>
void example(std::vector<std::uint8_t>& row) {
EXAMPLE
}

// ---- rgb_vectors_avx2.hpp
#ifdef __x86_64__
void example(std::uint8_t* data, std::size_t pixels) {
EXAMPLE
}
#endif

// ---- sharpen_kernels.hpp
void example(const mr::detail::rgb_pixels& pixels, std::vector<std::uint8_t>& memory) {
EXAMPLE
}

// ---- sharpen_kernels_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::rgb_pixels& pixels, std::vector<std::uint8_t>& memory) {
EXAMPLE
}
#endif

// ---- unfused.hpp
void example(double a, double b, double c) {
EXAMPLE
}

// ---- unfused_avx2.hpp
#ifdef __x86_64__
[[gnu::target("avx2")]] void example(__m256d a, __m256d b, __m256d c, __m256i backgrounds, __m256i values,
                                     __m256 factor) {
EXAMPLE
}
#endif

// ---- warp.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- warp_avx2.hpp
#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::rgb_pixels& pixels, const mr::detail::affine_map& map) {
EXAMPLE
}
#endif

// ---- warp_kernels.hpp
void example(const mr::detail::warp_source& from, const mr::detail::affine_map& map, std::uint8_t* row,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}

// ---- warp_points_avx2.hpp
#ifdef __x86_64__
void use(const mr::detail::four_warp_points&) {}
void example(const mr::detail::warp_line& line, std::size_t column) {
EXAMPLE
}
#endif
