void example(const mr::session_options& options, const std::vector<unsigned>& cores) {
EXAMPLE
}
