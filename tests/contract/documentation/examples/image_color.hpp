// ---- box_blur.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- box_blur_avx2.hpp
#include <millrace/simd/cpu_features.hpp>
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
#include <millrace/simd/cpu_features.hpp>
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
#include <millrace/simd/cpu_features.hpp>
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
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(std::span<const mr::detail::mixed_bytes> parts, std::size_t count, std::uint8_t* out) {
EXAMPLE
}
#endif

// ---- pixel_kernels.hpp
void example(const mr::detail::pending_tables& tables, std::uint8_t* row) {
EXAMPLE
}

// ---- pixel_kernels_avx2.hpp
#include <millrace/simd/cpu_features.hpp>
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
#include <millrace/simd/cpu_features.hpp>
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
