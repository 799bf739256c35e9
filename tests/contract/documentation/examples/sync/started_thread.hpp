void read_all();
void work(std::size_t index);
void example(std::vector<std::thread>& all) {
EXAMPLE
reader.join();
}
