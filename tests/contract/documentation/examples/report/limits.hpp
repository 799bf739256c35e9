// block 2 is a table of the limits
void example(const mr::detail::flow_figures& figures) {
EXAMPLE 1
}
