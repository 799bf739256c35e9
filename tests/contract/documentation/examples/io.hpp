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
#include <millrace/sources/shards.hpp>
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

// ---- append_file.hpp
void example(std::string_view record) {
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
EXAMPLE 1

// ---- unique_fd.hpp
#include <fcntl.h>
#include <cerrno>
void example(const char* path, void (*fail)(int)) {
EXAMPLE
}

// ---- key_list.hpp
#include <millrace/shards.hpp>
void example() {
EXAMPLE
}

// ---- sample_choice.hpp
void example(const mr::detail::shard_index& index, const std::vector<std::string>& keys,
             const std::function<std::size_t(std::string_view, std::string_view)>& weight_of) {
EXAMPLE
}

// ---- entries_build.hpp
void example(mr::detail::shard_index& index, const mr::detail::entry_maker& build, const std::string& shard,
             const std::string& path) {
EXAMPLE
}

// ---- entry_files.hpp
void example(const mr::detail::index_file_options& options, const std::string& name,
             const mr::detail::shard_index& index, mr::detail::read_meter& meter, mr::event_counts& counts,
             const mr::detail::indexed_reader& reader, mr::detail::reported_entries& reported,
             mr::detail::entry_counts& used) {
EXAMPLE
}

// ---- index_file.hpp
#include <millrace/io/index/format/tar_index_scan.hpp>
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}

// ---- index_format.hpp
void example(const mr::detail::shard_index& index, const mr::detail::index_front& front,
             const mr::detail::index_columns& columns, std::span<const std::uint32_t> ends) {
EXAMPLE
}

// ---- set_index.hpp
void write(const std::string&);
void example(std::string_view text) {
EXAMPLE
}

// ---- shard_index.hpp
#include <millrace/io/index/format/tar_index_scan.hpp>
void example(mr::byte_source& source, mr::block_pool& pool) {
EXAMPLE
}

// ---- tar_index_scan.hpp
#include <iostream>
void example(mr::block_pool& pool) {
EXAMPLE
}

// ---- block_cache.hpp
std::vector<mr::record> records_of(std::uint64_t shard, std::uint32_t block);
void example(std::span<const std::uint32_t> offsets, std::span<mr::record* const> places) {
EXAMPLE
}

// ---- block_size.hpp
void example(const mr::detail::expected_order& order) {
EXAMPLE
}

// ---- indexed_reader.hpp
void example(mr::byte_source& source, mr::detail::shard_index& index, mr::block_pool& pool,
             std::span<const std::uint32_t> numbers, std::span<mr::record> records) {
EXAMPLE
}

// ---- damaged_shards.hpp
struct options {
  std::size_t damaged_shards_at_most;
};
void example(const options& o, const std::string& name) {
EXAMPLE
}

// ---- index_build.hpp
void example(const std::vector<std::string>& shards, std::size_t k, const mr::detail::index_build_options& options) {
EXAMPLE
}

// ---- indexed_shard.hpp
using mr::detail::index_file_options;
void example(const mr::detail::index_summary& head, const std::string& name, const index_file_options& files,
             const mr::file_identity* file) {
EXAMPLE
}

// ---- shard_data.hpp
void example(const std::vector<std::string>& names, std::span<const mr::detail::located_sample> samples,
             std::span<mr::record> records, std::exception_ptr& failure) {
EXAMPLE
}

// ---- shared_reads.hpp
#include <millrace/io/index/set/shard_data.hpp>
void example(const std::vector<std::shared_ptr<mr::detail::shard_data>>& sets, mr::event_counts& counts) {
EXAMPLE
}

// ---- shard_sets.hpp
void example(const mr::detail::shard_sets& joined) {
EXAMPLE
}

// ---- shard_heads.hpp
void example(const std::vector<std::string>& names, std::size_t k) {
EXAMPLE
}

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

// ---- declared_samples.hpp
void example(std::uint64_t count) {
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
void example(const std::vector<std::byte>& image) {
EXAMPLE
}
