#include <millrace/item/record.hpp>
struct example {};
example varied(const mr::record& r, bool mirrored, std::int64_t angle, double gain);
EXAMPLE 1
// block 2 is a table
