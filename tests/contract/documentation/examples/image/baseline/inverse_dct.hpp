void example(const mr::detail::scan_component& component, std::int16_t* pair, std::uint8_t* samples,
             std::size_t stride_bytes) {
EXAMPLE 1
}
// block 2 is a line of a list
