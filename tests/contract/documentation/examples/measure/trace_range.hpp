void example(std::uint64_t batch, const std::string& name) {
EXAMPLE
}
