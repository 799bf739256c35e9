#include <millrace/io/index/shard_data.hpp>
void use(const mr::record&);
void example(std::shared_ptr<mr::detail::shard_data> data, const mr::detail::exact_order& plan,
             const std::vector<mr::detail::ordered_sample>& wanted) {
EXAMPLE
}
