std::string who_waits();
void engine(const mr::detail::trainer_times& times, mr::detail::notice_outlet& notices) {
EXAMPLE
}
