// block 1 is a diagram of a slot's states
void example(std::vector<std::byte*> pieces, std::uint64_t batch) {
EXAMPLE 2
}
