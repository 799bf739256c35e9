void show(std::shared_ptr<mr::detail::worker_task> task, std::size_t worker) {
EXAMPLE
}
