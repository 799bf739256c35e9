void say(std::span<const std::size_t> shape) {
EXAMPLE
}
