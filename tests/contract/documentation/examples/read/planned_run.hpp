std::unique_ptr<mr::detail::planned_run> plan();

void show(mr::detail::ready_batch& batch) {
EXAMPLE
}
