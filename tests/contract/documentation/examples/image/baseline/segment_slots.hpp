void example(const mr::detail::scan_header& header, const mr::detail::segment_slots::tables_of_components& tables,
             mr::detail::block_stream& stream, const mr::detail::stop_table& stop, std::size_t mcus) {
EXAMPLE
}
