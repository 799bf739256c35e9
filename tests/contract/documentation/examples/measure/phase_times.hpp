void example(mr::detail::phase_times& times, mr::detail::stage_figures& stage, std::uint64_t maps_ns,
             std::uint64_t rendering_ns, std::size_t samples) {
EXAMPLE
}
