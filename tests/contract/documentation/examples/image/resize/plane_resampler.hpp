#include <millrace/image/resize/basic_plane_resizer.hpp>
mr::detail::pushed_rows four_rows(std::size_t first);
void example(const mr::detail::tap_table& rows, const mr::detail::tap_table& columns, mr::detail::row_taps& t) {
EXAMPLE
}
