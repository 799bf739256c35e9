void example(std::span<mr::f16> numbers, mr::rng& random) {
EXAMPLE
  static_cast<void>(as_torchvision);
}
