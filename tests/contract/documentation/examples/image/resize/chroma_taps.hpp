void example(const mr::detail::tap_table& luma) {
EXAMPLE 1
}
// block 2 is a formula
