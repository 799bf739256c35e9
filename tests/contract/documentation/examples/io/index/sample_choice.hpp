void example(const mr::detail::shard_index& index, const std::vector<std::string>& keys,
             const std::function<std::size_t(std::string_view, std::string_view)>& weight_of) {
EXAMPLE
}
