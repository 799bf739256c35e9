void example(const mr::detail::plan_axis& axis, std::size_t i) {
EXAMPLE 1
}
// block 2 is a formula
