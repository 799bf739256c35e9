void show(const std::string& text) {
EXAMPLE
}
