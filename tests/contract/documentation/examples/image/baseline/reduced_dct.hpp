void example(const mr::detail::scan_component& component, std::int16_t* pair, mr::detail::sample_target to) {
EXAMPLE
}
