// ---- avx2_plane_kernels.hpp
#include <millrace/image/resize/basic_plane_resizer.hpp>
#ifdef __x86_64__
void example() {
EXAMPLE
}
#endif

// ---- basic_plane_resizer.hpp
void example(const mr::detail::plane_resize& job) {
EXAMPLE
}

// ---- chroma_taps.hpp
void example(const mr::detail::tap_table& luma) {
EXAMPLE 1
}
// block 2 is a formula

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
// block 2 is the second line of an entry in a list
// block 3 is another one

// ---- fancy_upsampling.hpp
void example(const std::uint8_t* nearer, const std::uint8_t* farther, std::size_t count, std::int16_t* sums,
             const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d,
             std::int16_t* ba, std::int16_t* bc, std::int16_t* cb, std::int16_t* cd, const std::uint8_t* y,
             const std::int16_t* sums_u, const std::int16_t* sums_v, std::uint8_t* red, std::uint8_t* green,
             std::uint8_t* blue) {
EXAMPLE
}

// ---- fancy_upsampling_avx2.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const std::uint8_t* y, const std::uint8_t* u, const std::uint8_t* v, std::uint8_t* r, std::uint8_t* g,
             std::uint8_t* b) {
EXAMPLE
}
#endif

// ---- fancy_upsampling_avx512.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const std::uint8_t* y, const std::int16_t* u, const std::int16_t* v, std::uint8_t* r, std::uint8_t* g,
             std::uint8_t* b) {
  std::size_t done = 0;
EXAMPLE
  static_cast<void>(done);
}
#endif

// ---- guarded_plane.hpp
void example(const mr::detail::jpeg_planes& planes, std::size_t y) {
EXAMPLE
}

// ---- medium_columns_avx512.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums, bool clamps) {
EXAMPLE
}
#endif

// ---- pixel_target.hpp
void example(std::uint8_t* row, float* numbers, const std::uint8_t* line, void* to, float s, float b) {
EXAMPLE
}

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

// ---- rgb_rows.hpp
void example(const mr::detail::jpeg_planes& planes) {
EXAMPLE
}

// ---- row_kernels.hpp
void example(const std::int16_t* a, const std::int16_t* b, const mr::detail::row_taps& luma,
             const mr::detail::row_taps& chroma, std::uint8_t* row) {
EXAMPLE
}

// ---- row_kernels_avx2.hpp
#ifdef __x86_64__
void example(const mr::detail::row_taps& taps, std::uint8_t* row) {
EXAMPLE
}
#endif

// ---- row_kernels_avx512.hpp
#include <millrace/image/resize/row_kernels_avx2.hpp>
#ifdef __x86_64__
void example(const mr::detail::row_taps& taps, std::uint8_t* row) {
EXAMPLE
}
#endif

// ---- short_columns_avx512.hpp
#include <millrace/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(mr::detail::short_column_group& group, const mr::detail::column_rows& rows) {
EXAMPLE
}
#endif

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
