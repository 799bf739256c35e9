void write(const std::string& page);

void example(const mr::detail::flow_figures& window, mr::detail::timeline events) {
EXAMPLE
}
