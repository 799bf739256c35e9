#include <millrace/io/index/shard_data.hpp>

void use(mr::detail::sample<mr::record>);

void show(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan, mr::detail::world mine,
          std::size_t shard, std::uint64_t epoch) {
EXAMPLE
}
