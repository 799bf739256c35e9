void show(std::size_t index, const std::atomic<bool>& stopped, std::uint64_t now) {
EXAMPLE
}
