void example(mr::detail::trainer_times& times, mr::detail::flow_figures& figures, std::uint64_t started_ns,
             std::uint64_t called_ns, std::uint64_t arrived_ns, std::uint64_t answered_ns, std::uint64_t now_ns) {
EXAMPLE
}
