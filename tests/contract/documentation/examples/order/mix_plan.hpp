void show(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
EXAMPLE 1
}
// block 2 is a part of a list
// block 3 is a part of a list
