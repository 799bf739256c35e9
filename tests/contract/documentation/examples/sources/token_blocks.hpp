std::vector<std::byte> read(std::uint64_t file, std::uint64_t number);
void example(std::uint64_t file, std::uint64_t number) {
EXAMPLE
}
