#ifdef __x86_64__
void use(const mr::detail::four_warp_points&) {}
void example(const mr::detail::warp_line& line, std::size_t column) {
EXAMPLE
}
#endif
