#include <millrace/io/file/byte_source.hpp>
void example(mr::file_source& file, std::span<std::byte> buffer) {
EXAMPLE
}
