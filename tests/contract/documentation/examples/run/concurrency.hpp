void warm_up();
void engine(const mr::session_options& options, unsigned workers, std::size_t reads_that_memory_allows,
            std::uint64_t batches, const mr::detail::flow_figures& figures, mr::detail::notice_outlet& notices,
            const std::vector<mr::detail::pipeline_node*>& nodes) {
EXAMPLE
}
