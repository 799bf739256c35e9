void example(const mr::detail::scan_header& header, const mr::detail::jpeg_planes_request& request,
             mr::detail::byte_memory& memory) {
EXAMPLE
}
