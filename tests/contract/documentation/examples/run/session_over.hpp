void engine(std::exception_ptr first_error) {
EXAMPLE
}
