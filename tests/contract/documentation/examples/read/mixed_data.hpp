#include <millrace/mix.hpp>

void show(std::shared_ptr<mr::detail::shard_data> a, std::shared_ptr<mr::detail::shard_data> b,
          std::span<const mr::detail::located_sample> wanted, std::span<mr::detail::mixed_record> records,
          std::exception_ptr failure) {
EXAMPLE
}
