void example(const mr::detail::jpeg_planes_request& request, mr::detail::component_table_store& store) {
EXAMPLE
}
