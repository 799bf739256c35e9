#include <millrace/io/cache/cached.hpp>
#include <millrace/sources/indexed_shards.hpp>
struct vault {
  struct file {
    mr::file_identity identity() const { return {}; }
    std::size_t read_at(std::uint64_t, std::span<std::byte>) { return 0; }
  };
  std::unique_ptr<file> open(const std::string&) const { return nullptr; }
};
void example() {
EXAMPLE
}
