#ifdef __x86_64__
void example(std::uint8_t* data, std::size_t pixels) {
EXAMPLE
}
#endif
