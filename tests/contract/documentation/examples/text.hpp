std::vector<std::uint32_t> tokenize(std::string_view text);
template <class Batch>
void train_step(Batch& batch);

void example() {
EXAMPLE
}
