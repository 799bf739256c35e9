struct session_options { std::function<void(const mr::notice&)> notice; };
void example(const session_options& options) {
EXAMPLE
}
