mr::detail::jpeg_refusal example(const mr::detail::scan_component& component, std::uint64_t window) {
EXAMPLE
  return mr::detail::jpeg_refusal::none;
}
