struct place { int find(const std::string& name) const; };
void example(const std::vector<std::string>& names, const place* at, std::vector<int>& found, std::size_t i) {
EXAMPLE
}
