void apply(const mr::detail::concurrency_counts& open);
void tell(const std::string& text);
void after_a_window(const mr::detail::tuning_window& window) {
EXAMPLE
}
