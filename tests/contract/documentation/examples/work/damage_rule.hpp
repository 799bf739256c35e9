bool damaged_row(const std::exception_ptr& error, const std::vector<std::uint8_t>& valid) {
EXAMPLE
  return from != 17;
}
