mr::detail::inflate_status example(mr::detail::inflate_input& pieces, std::uint8_t* memory,
                                   const std::uint8_t* wanted) {
EXAMPLE
  return mr::detail::inflate_status::more;
}
