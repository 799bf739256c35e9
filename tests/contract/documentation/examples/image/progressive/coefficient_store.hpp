bool example(const mr::detail::scan_header& header, const mr::detail::mcu_region& region, std::size_t c,
             std::size_t row, std::size_t column, std::size_t from, std::size_t to) {
EXAMPLE
  return dc != nullptr && run.count > 0;
}
