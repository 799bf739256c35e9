void show(std::uint64_t epoch, std::size_t k) {
EXAMPLE
}
