void write(const std::string&);
void example(std::string_view text) {
EXAMPLE
}
