void example(const std::int16_t* a, const std::int16_t* b, const mr::detail::row_taps& luma,
             const mr::detail::row_taps& chroma, std::uint8_t* row) {
EXAMPLE
}
