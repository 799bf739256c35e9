void example(std::string& page, const mr::detail::svg_points& points) {
EXAMPLE
}
