#include <millrace/item/record.hpp>
struct example {};
example varied(const mr::record& r, bool mirrored, std::int64_t angle, double gain);
EXAMPLE
