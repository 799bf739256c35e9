#include <millrace/io/cache/cache_block.hpp>
void example(const mr::cache_options& options, mr::detail::cache_counts& counts, const mr::detail::unique_fd& part,
             std::uint64_t bytes, const mr::detail::cache_block& damaged) {
EXAMPLE
}
