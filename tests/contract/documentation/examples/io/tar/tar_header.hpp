void example(std::uint64_t size_bytes) {
EXAMPLE
}
