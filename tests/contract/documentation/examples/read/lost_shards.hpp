void note(const std::exception_ptr& why);
void lose(const std::exception_ptr& error) {
EXAMPLE
}
