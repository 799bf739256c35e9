// ---- append_file.hpp
void example(std::string_view record) {
EXAMPLE
}

// ---- at_once.hpp
#include <string>
#include <vector>
struct place {
  int find(const std::string& name) const;
};
void example(const std::vector<std::string>& names, std::vector<int>& found, const place* at) {
EXAMPLE
}

// ---- atomic_file.hpp
void example(std::span<const std::byte> data) {
EXAMPLE
}

// ---- byte_source.hpp
#include <memory>
#include <vector>
void example(std::uint64_t offset_bytes, std::vector<std::byte>& buffer) {
EXAMPLE 1
}
EXAMPLE 2

// ---- file_list.hpp
void example(mr::detail::read_meter& meter) {
EXAMPLE
}

// ---- foreign_file.hpp
#include <millrace/base/error.hpp>
void example(std::string_view front) {
EXAMPLE
}

// ---- metered_file.hpp
void example(mr::detail::read_meter& meter) {
EXAMPLE
}

// ---- posix_files.hpp
#include <millrace/io/file/byte_source.hpp>
void example() {
EXAMPLE
}

// ---- read_file.hpp
#include <millrace/adapt/remote.hpp>
#include <millrace/millrace.hpp>
void example() {
EXAMPLE
}

// ---- storage.hpp
#include <millrace/shards.hpp>
// block 1 is the program with its storage
EXAMPLE 1

// ---- unique_fd.hpp
#include <fcntl.h>
#include <cerrno>
void example(const char* path, void (*fail)(int)) {
EXAMPLE
}
