// ---- axis_taps.hpp
void make_again(std::uint32_t) {}
void example(const std::uint8_t* bytes, float* numbers, const mr::detail::axis_tap_row& row, std::uint32_t* doubtful) {
EXAMPLE
}

// ---- axis_taps_avx2.hpp
#include <millrace/simd/cpu_features.hpp>
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

// ---- warp.hpp
void example(const mr::detail::rgb_pixels& pixels) {
EXAMPLE
}

// ---- warp_avx2.hpp
#include <millrace/simd/cpu_features.hpp>
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
