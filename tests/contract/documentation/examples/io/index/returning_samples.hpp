void example(mr::detail::returning_samples& returning, mr::detail::known_shard& shard, std::size_t number,
             const std::string& name, mr::detail::event_counts& counts, const std::vector<std::string>& names,
             const mr::detail::index_file_options& files) {
EXAMPLE
}
