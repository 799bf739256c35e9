std::string who_waits();
void engine(const mr::detail::trainer_times& times) {
EXAMPLE
}
