void example(const std::vector<std::byte>& picture) {
EXAMPLE
}
