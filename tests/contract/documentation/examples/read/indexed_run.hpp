#include <millrace/io/index/shard_data.hpp>

void show(std::shared_ptr<mr::detail::shard_data> data, mr::detail::world mine, std::string text,
          const mr::detail::ready_batch& batch, std::uint64_t epoch, std::uint64_t position) {
EXAMPLE
}
