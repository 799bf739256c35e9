mr::detail::jpeg_refusal example(const mr::detail::scan_header& header, const mr::detail::progressive_scan& scan,
                                 const mr::detail::dc_scan::tables& codes, mr::detail::coefficient_store& store,
                                 std::uintptr_t bit, std::uintptr_t end_bit, std::size_t row) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return none;
}
