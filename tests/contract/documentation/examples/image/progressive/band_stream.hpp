mr::detail::jpeg_refusal example(const mr::detail::band_table& table, mr::detail::coefficient_set* sets,
                                 std::int16_t* pairs, std::uintptr_t first_bit, std::uintptr_t end) {
  using enum mr::detail::jpeg_refusal;
EXAMPLE
  return none;
}
