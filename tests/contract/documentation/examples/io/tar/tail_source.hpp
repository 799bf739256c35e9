void example(std::unique_ptr<mr::byte_source> source, std::uint64_t sample_offset_bytes) {
EXAMPLE
}
