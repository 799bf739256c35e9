struct some_session {
  mr::detail::batch_lease next();
};
void log(std::size_t rows, std::uint64_t epoch, std::uint64_t step);

void show(some_session& run) {
EXAMPLE
}
