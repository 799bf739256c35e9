#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
example prepare(const mr::record& r);
void show() {
EXAMPLE
}
