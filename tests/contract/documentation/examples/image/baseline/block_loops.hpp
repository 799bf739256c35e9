void example(mr::detail::block_stream& stream, mr::detail::block_stream& other) {
EXAMPLE
}
