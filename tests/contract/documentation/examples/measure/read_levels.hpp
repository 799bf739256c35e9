void example(mr::detail::read_levels& levels, std::uint64_t spent_ns, std::uint64_t took_ns, std::uint64_t size) {
EXAMPLE
}
