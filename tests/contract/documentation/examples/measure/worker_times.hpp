void example(mr::detail::worker_times& times, mr::detail::stage_figures& stage, std::uint64_t now,
             std::uint64_t batch) {
EXAMPLE
}
