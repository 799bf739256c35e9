void show(std::size_t ahead, std::uint64_t samples_that_wait_for_workers) {
EXAMPLE
}
