// ---- header_window.hpp
void example(mr::byte_source& source, mr::block_pool& pool, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
EXAMPLE
}

// ---- required_fields.hpp
// block 1 is a member of an options struct

// ---- tar_fields.hpp
void example(std::string_view block, std::string_view records, std::string_view bytes) {
EXAMPLE
}

// ---- tar_header.hpp
void example(std::uint64_t size_bytes) {
EXAMPLE
}

// ---- tar_member.hpp
#include <millrace/io/tar/read/tar_reader.hpp>

void show(mr::detail::tar_reader& tar, std::vector<std::byte>& buffer) {
EXAMPLE
}

// ---- archive.hpp
#include <stdexcept>
void example() {
EXAMPLE
}

// ---- counted_beside.hpp
void example(std::uint64_t found) {
EXAMPLE
}

// ---- gzip_inflater.hpp
#include <stdexcept>
void example(std::span<const std::byte> input, std::span<std::byte> buffer) {
EXAMPLE
}

// ---- plain_tar.hpp
void use(const mr::detail::tar_member& member);
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}

// ---- returning_keys.hpp
void example(std::size_t pieces) {
EXAMPLE
}

// ---- shard_reader.hpp
void use(const mr::record& sample);
void example() {
EXAMPLE
}

// ---- shard_stream.hpp
void use(std::span<const std::byte> chunk);
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}

// ---- tail_source.hpp
void example(std::unique_ptr<mr::byte_source> source, std::uint64_t sample_offset_bytes) {
EXAMPLE
}

// ---- tar_reader.hpp
#include <vector>
void example(std::vector<std::byte>& buffer, mr::block_pool& pool) {
EXAMPLE
}

// ---- shard_writer.hpp
void example(const std::vector<std::byte>& picture) {
EXAMPLE
}
