mr::detail::flow_figures figures_now();
void example(mr::detail::flow_figures figures, const mr::detail::process_figures& at_start,
             mr::detail::warm_up_figures& warm_ups, std::uint64_t batches) {
EXAMPLE
}
