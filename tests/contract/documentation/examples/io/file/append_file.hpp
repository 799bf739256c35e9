void example(std::string_view record) {
EXAMPLE
}
