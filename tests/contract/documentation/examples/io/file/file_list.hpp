void example(mr::detail::read_meter& meter) {
EXAMPLE
}
