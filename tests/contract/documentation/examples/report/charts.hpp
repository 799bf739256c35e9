void example(std::string& page, const mr::run_report& r) {
EXAMPLE
}
