void show(std::shared_ptr<mr::detail::worker_task> task) {
EXAMPLE
}
