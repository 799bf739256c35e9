void example(const std::vector<std::string>& names, std::span<const mr::detail::located_sample> wanted,
             std::span<mr::record> records, std::exception_ptr& failure) {
EXAMPLE
}
