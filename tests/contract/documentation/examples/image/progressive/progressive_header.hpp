void decode(const mr::detail::progressive_scan& scan);
mr::detail::jpeg_refusal example(std::span<const std::uint8_t> file, mr::detail::scan_header& header,
                                 std::size_t behind_data) {
EXAMPLE
  return mr::detail::jpeg_refusal::none;
}
