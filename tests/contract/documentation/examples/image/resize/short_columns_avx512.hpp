#include <millrace/image/simd/cpu_features.hpp>
#ifdef __x86_64__
void example(mr::detail::short_column_group& group, const mr::detail::column_rows& rows) {
EXAMPLE
}
#endif
