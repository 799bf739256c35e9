void train_step(std::size_t rows);

void engine(const mr::session_options& options, const mr::detail::run_settings& settings,
            mr::detail::planned_run& order, mr::detail::read_stage& reading,
            std::vector<mr::detail::pipeline_node*> nodes, mr::detail::final_segment& last) {
EXAMPLE
}
