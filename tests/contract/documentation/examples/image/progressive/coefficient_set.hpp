std::uint64_t example() {
EXAMPLE
  return third + k;
}
