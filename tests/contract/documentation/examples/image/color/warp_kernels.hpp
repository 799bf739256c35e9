void example(const mr::detail::warp_source& from, const mr::detail::affine_map& map, std::uint8_t* row,
             const mr::detail::rgb_color& fill) {
EXAMPLE
}
