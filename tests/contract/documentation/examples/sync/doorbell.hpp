void example(mr::detail::doorbell& bell, std::atomic<int>& work_to_do) {
EXAMPLE
}
