void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header, std::byte* row,
          mr::scratch& memory) {
EXAMPLE
}
