void go_the_plain_way() {}
void example(const mr::detail::warp_source& from, const mr::detail::rgb_pixels& pixels,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}
