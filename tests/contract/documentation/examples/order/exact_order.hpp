#include <millrace/order/lane_cursor.hpp>

void show(const std::vector<std::uint64_t>& counts, const mr::detail::world& r) {
EXAMPLE
}
