void show(std::uint64_t length, std::uint64_t (*key_of)(std::uint64_t)) {
EXAMPLE
}
