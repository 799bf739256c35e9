#include <millrace/text.hpp>

struct example {
  mr::ragged<std::uint32_t> words;
  std::int32_t label, kind;
};
example prepare(const mr::record&);

void show() {
EXAMPLE 1
  auto kinds =
EXAMPLE 2
      ;
}
