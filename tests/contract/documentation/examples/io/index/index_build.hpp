void example(const std::vector<std::string>& shards, std::size_t k, const mr::detail::index_build_options& options) {
EXAMPLE
}
