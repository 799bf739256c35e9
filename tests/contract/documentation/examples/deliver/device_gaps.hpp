void show(std::shared_ptr<mr::device_backend> backend, mr::stream_view stream, mr::detail::flow_figures& figures) {
EXAMPLE
}
