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
void example(mr::detail::shard_index& index, const mr::detail::entry_maker& make, const std::string& shard,
             const std::string& path) {
EXAMPLE
}

// ---- entry_file.hpp
#include <millrace/io/index/read/indexed_reader.hpp>
void example(const mr::storage& place, mr::detail::read_meter& meter, mr::byte_source& source,
             mr::detail::shard_index& index, mr::block_pool& pool) {
EXAMPLE
}

// ---- entry_files.hpp
void example(const mr::detail::index_file_options& options, const std::string& name,
             const mr::detail::shard_index& index, mr::detail::read_meter& meter, mr::detail::event_counts& counts,
             const mr::detail::indexed_reader& reader, mr::detail::told_entries& told) {
EXAMPLE
}

// ---- entry_table.hpp
#include <millrace/io/index/format/shard_index.hpp>
void example(const mr::detail::shard_index& index, std::uint32_t member) {
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

// ---- given_up_shards.hpp
#include <millrace/base/error.hpp>
void open(std::size_t shard);
void fail(const std::exception_ptr&);
void example(std::size_t shard) {
EXAMPLE
}

// ---- index_build.hpp
void example(const std::vector<std::string>& shards, std::size_t k, const mr::detail::index_build_options& options) {
EXAMPLE
}

// ---- known_shard.hpp
using mr::detail::index_file_options;
void example(const mr::detail::index_summary& head, const std::string& name, const index_file_options& files,
             const mr::file_identity* file) {
EXAMPLE
}

// ---- returning_samples.hpp
void example(mr::detail::returning_samples& returning, mr::detail::known_shard& shard, std::size_t number,
             const std::string& name, mr::detail::event_counts& counts, const std::vector<std::string>& names,
             const mr::detail::index_file_options& files) {
EXAMPLE
}

// ---- shard_data.hpp
void example(const std::vector<std::string>& names, std::span<const mr::detail::located_sample> wanted,
             std::span<mr::record> records, std::exception_ptr& failure) {
EXAMPLE
}

// ---- shard_heads.hpp
void example(const std::vector<std::string>& names, std::size_t k) {
EXAMPLE
}
