// Samples that are already in memory, encoded as in the shards: a source that waits for nothing.
//
//   const auto records = bench::load_records(names, std::size_t{256} << 20);
//   auto flow = bench::ram_records(records) | mr::map(prepare) | ...
//
// Errors: those of reading the shards. Threads: any; records share their blocks.
#pragma once

#include <millrace/flow/flow.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

using record_list = std::shared_ptr<const std::vector<millrace::record>>;

/// Loads as many records from the first shards as fit.
inline record_list load_records(const std::vector<std::string>& names, std::size_t max_bytes) {
  auto records = std::make_shared<std::vector<millrace::record>>();
  millrace::block_pool pool;
  std::size_t bytes = 0;
  for (const auto& name : names) {
    millrace::shard_reader shard(std::make_unique<millrace::file_source>(name), pool);
    while (bytes < max_bytes) {
      auto next = shard.next();
      if (!next) break;
      bytes += next->held_bytes();
      records->push_back(std::move(*next));
    }
  }
  return records;
}

class ram_records_source {
 public:
  using item = millrace::record;
  static constexpr bool same_every_pass = true;

  explicit ram_records_source(record_list records) : records_(std::move(records)) {}
  std::size_t shards() const noexcept { return 1; }

  struct reader {
    record_list records;
    std::size_t at = 0;
    std::optional<item> next() {
      return at < records->size() ? std::optional<item>((*records)[at++]) : std::nullopt;
    }
  };
  reader open(std::size_t, std::uint64_t) const { return {records_}; }

 private:
  record_list records_;
};

inline auto ram_records(record_list records) {
  return millrace::detail::flow<millrace::record, ram_records_source>{{}, ram_records_source(std::move(records)), 7};
}

}  // namespace bench
