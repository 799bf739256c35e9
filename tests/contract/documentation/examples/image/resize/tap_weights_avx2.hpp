#ifdef __x86_64__
void example(mr::detail::tap_table& table, const mr::detail::plan_axis& axis) {
EXAMPLE
}
#endif
