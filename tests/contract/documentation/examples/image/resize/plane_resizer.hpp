void fill(std::uint8_t* pixels);
void example(const mr::detail::plan_axis& y, const mr::detail::plan_axis& x, const mr::detail::jpeg_planes& planes,
             std::uint8_t* row, std::size_t left, std::size_t width) {
EXAMPLE
}
