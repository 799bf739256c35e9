void example(const mr::bytes& file, const mr::jpeg_options& o, const mr::jpeg_header& h,
             const mr::detail::resize_plan& plan, const mr::detail::pixel_target& t, mr::scratch& scratch) {
EXAMPLE
}
