#include <millrace/metrics.hpp>
void keep(mr::row& r);
void logging(std::uint64_t step, double rate, mr::row r) {
EXAMPLE
}
