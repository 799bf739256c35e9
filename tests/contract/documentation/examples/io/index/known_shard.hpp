using mr::detail::index_file_options;
void example(const mr::detail::index_summary& head, const std::string& name, const index_file_options& files,
             const mr::file_identity* file) {
EXAMPLE
}
