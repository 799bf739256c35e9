void example(const mr::detail::index_file_options& options, const std::string& name,
             const mr::detail::shard_index& index, mr::detail::read_meter& meter, mr::detail::event_counts& counts,
             const mr::detail::indexed_reader& reader, mr::detail::told_entries& told) {
EXAMPLE
}
