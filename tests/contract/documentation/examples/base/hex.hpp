void example(std::uint64_t digest) {
EXAMPLE
}
