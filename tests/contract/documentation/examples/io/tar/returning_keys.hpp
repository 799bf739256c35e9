void example(std::size_t pieces) {
EXAMPLE
}
