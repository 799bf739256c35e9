void leave_out(const std::string& key, const std::string& shard);
void example(std::string_view text) {
EXAMPLE
}
