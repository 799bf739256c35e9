void example(std::uint64_t spent_ns) {
EXAMPLE
}
