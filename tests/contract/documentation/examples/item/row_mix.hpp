void example(std::uint8_t own, std::uint8_t other) {
EXAMPLE
  static_cast<void>(by_cutmix);
  static_cast<void>(mixed);
}
