#ifdef __x86_64__
void example(const mr::detail::tap_table& taps, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
             const std::uint8_t* d, std::int16_t* sums) {
EXAMPLE 1
}
#endif
// block 2 is the second line of an entry in a list
// block 3 is another one
