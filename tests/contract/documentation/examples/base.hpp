// ---- address_sanitizer.hpp
void example(void* slot, std::size_t bytes) {
EXAMPLE
}

// ---- crc32c.hpp
void example(std::span<const std::byte> data, std::span<const std::byte> first_half,
             std::span<const std::byte> second_half) {
EXAMPLE
}

// ---- digest.hpp
void example(std::uint64_t position, std::span<const std::byte> row) {
EXAMPLE
}

// ---- error.hpp
#include <iostream>
#include <millrace/millrace.hpp>
struct row {
  std::int32_t label;
};
row prepare(const mr::record& r);
void step(const auto& batch);
void quarantine(const std::string& shard, const std::string& key);
void example() {
  auto run = mr::session{mr::shards("train.tar") | mr::map(prepare) | mr::batch<&row::label>({.size = 256})};
EXAMPLE
}

// ---- file_kind.hpp
#include <span>
#include <string>
void fail(const std::string& message);
void show(std::span<const std::byte> first_bytes, std::uint64_t size) {
EXAMPLE
}

// ---- json_objects.hpp
#include <map>
#include <string_view>
void example(std::string_view text, std::map<std::string, std::uint64_t>& counts) {
EXAMPLE
}

// ---- json_writer.hpp
void example(std::string_view name, double value) {
EXAMPLE
}

// ---- limits.hpp
#include <millrace/millrace.hpp>
void example(const std::vector<std::string>& names, const mr::record& r) {
EXAMPLE
}

// ---- notice.hpp
#include <millrace/millrace.hpp>
#include <ostream>
struct example { std::int32_t number; };
example prepare(const int& n);
void alarm(const std::string& shard, const std::string& text);
void show(const std::vector<int>& numbers, std::ostream& log) {
  auto flow = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
  auto more = mr::from(numbers) | mr::map(prepare) | mr::batch<&example::number>({.size = 4});
EXAMPLE
}

// ---- random.hpp
#include <millrace/item/record.hpp>
struct example {};
example varied(const mr::record& r, bool mirrored, std::int64_t angle, double gain);
EXAMPLE 1
// block 2 is a table

// ---- text.hpp
#include <millrace/base/crc32c.hpp>
void example(std::string_view text) {
EXAMPLE
}

// ---- version.hpp
#include <millrace/base/error.hpp>
EXAMPLE
