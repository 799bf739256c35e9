#include <millrace/work/dispatcher.hpp>

void show(mr::detail::batch_ring& ring, std::shared_ptr<mr::detail::dispatcher> dispatcher,
          mr::detail::sample<mr::record> s, std::uint64_t ticket, std::size_t bytes) {
EXAMPLE
}
