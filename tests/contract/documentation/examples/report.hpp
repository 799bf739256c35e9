#include <millrace/millrace.hpp>

struct row {
  std::int32_t label;
};
using flow = decltype(mr::from(std::vector<row>()) | mr::batch<&row::label>({.size = 16}));

void example(const mr::session<flow>& run) {
EXAMPLE
}
