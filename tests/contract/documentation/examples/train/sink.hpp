#include <millrace/metrics.hpp>
struct database { void insert(std::uint64_t step, const std::vector<mr::quantity>& values); };
extern database connection;
void logging() {
EXAMPLE
}
