void example(std::uint64_t found) {
EXAMPLE
}
