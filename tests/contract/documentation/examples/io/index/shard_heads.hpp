void example(const std::vector<std::string>& names, std::size_t k) {
EXAMPLE
}
