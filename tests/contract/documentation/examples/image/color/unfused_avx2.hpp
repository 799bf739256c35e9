#ifdef __x86_64__
[[gnu::target("avx2")]] void example(__m256d a, __m256d b, __m256d c, __m256i backgrounds, __m256i values,
                                     __m256 factor) {
EXAMPLE
}
#endif
