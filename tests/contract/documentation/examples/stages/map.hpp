#include <millrace/millrace.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&, mr::rng&);
example ask_a_server(example);

void show() {
EXAMPLE
}
