// ---- cache_block.hpp
void example(const std::string& path, const mr::detail::cached_object& object, const mr::detail::cache_layout& layout,
             std::uint64_t offset_in_block, std::span<std::byte> buffer) {
EXAMPLE
}

// ---- cache_contents.hpp
#include <millrace/base/error.hpp>
#include <cstdio>
void example() {
EXAMPLE
}

// ---- cache_counts.hpp
void example(const mr::cache_options& options) {
EXAMPLE
}

// ---- cache_folder.hpp
void example(const mr::cache_options& options, const mr::detail::cache_layout& layout,
             mr::detail::cache_counts& counts, const mr::detail::cached_object& object,
             std::span<const std::byte> data) {
EXAMPLE
}

// ---- cache_ledger.hpp
#include <millrace/io/cache/cache_block.hpp>
void example(const mr::cache_options& options, mr::detail::cache_counts& counts, const mr::detail::unique_fd& part,
             std::uint64_t bytes, const mr::detail::cache_block& damaged) {
EXAMPLE
}

// ---- cache_options.hpp
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

// ---- cache_plan.hpp
#include <vector>
void example(std::uint64_t limit_bytes, const std::vector<std::string>& names,
             const std::vector<std::uint64_t>& blocks) {
EXAMPLE
}

// ---- cached.hpp
#include <millrace/shards.hpp>
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

// ---- cached_storage.hpp
#include <millrace/shards.hpp>
void example(std::shared_ptr<mr::storage_interface> below) {
EXAMPLE
}
