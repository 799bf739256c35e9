void example(void* slot, std::size_t bytes) {
EXAMPLE
}
