void show(std::uint64_t from_the_resume_point, const mr::detail::ready_batch& batch) {
EXAMPLE
}
