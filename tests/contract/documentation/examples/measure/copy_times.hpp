void wait_for_room();
void example(mr::detail::copy_times& times, std::uint64_t queued_ns, std::uint64_t batch, std::size_t bytes) {
EXAMPLE
}
