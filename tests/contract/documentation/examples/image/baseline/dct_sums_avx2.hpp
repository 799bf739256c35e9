#ifdef __x86_64__
using mr::detail::avx2::quads;
using mr::detail::avx2::words;
[[gnu::target("avx2")]] void example(quads rounding, words x04, words x26) {
EXAMPLE
}
#endif
