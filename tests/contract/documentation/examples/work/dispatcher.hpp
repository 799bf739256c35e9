void show(mr::detail::dispatcher_work& segment, mr::detail::executor& executor, std::uint64_t n, std::uint64_t m) {
EXAMPLE
}
