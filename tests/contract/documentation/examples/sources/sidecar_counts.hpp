void plan_with(std::uint64_t samples);
void plan(const std::vector<std::string>& shards, std::size_t k) {
EXAMPLE
}
