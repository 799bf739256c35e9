// error: a storage has open.name., which returns a pointer to a file with identity.. and read_at
#include <millrace/sources/shards.hpp>

#include <memory>
#include <string>

namespace mr = millrace;

struct memory_file {
  mr::file_identity identity() const { return {.size_bytes = 0}; }
  std::size_t read_at(std::uint64_t, std::span<std::byte>) { return 0; }
};
struct memory {
#if MISTAKE
  std::unique_ptr<memory_file> get(const std::string&) const { return nullptr; }
#else
  std::unique_ptr<memory_file> open(const std::string&) const { return nullptr; }
#endif
};

void train() {
  static_cast<void>(mr::shards("memory:a.tar", {.storage = memory()}));   // wrong here
}
