void step(double loss, std::size_t batch_size, const mr::detail::metric_totals& others) {
EXAMPLE
}
