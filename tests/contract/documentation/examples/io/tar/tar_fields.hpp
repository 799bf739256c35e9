void example(std::string_view block, std::string_view records, std::string_view bytes) {
EXAMPLE
}
