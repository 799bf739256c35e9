mr::detail::jpeg_refusal example(std::span<const std::byte> bytes) {
EXAMPLE
  return mr::detail::jpeg_refusal::none;
}
