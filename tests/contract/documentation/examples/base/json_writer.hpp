void example(std::string_view name, double value) {
EXAMPLE
}
