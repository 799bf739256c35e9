struct options {
  std::size_t damaged_shards_at_most;
};
void example(const options& o, const std::string& name) {
EXAMPLE
}
