void write(const std::string& json);

void example(const mr::detail::timeline& events) {
EXAMPLE
}
