void use(const mr::packed&);
void example(const mr::detail::file_list& files, const mr::detail::token_data_options& options,
             const std::vector<mr::detail::ordered_sample>& wanted) {
EXAMPLE
}
