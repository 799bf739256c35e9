// error: the callable in map\(\) returns void: expected the next item
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

#include <string>

namespace mr = millrace;

struct example {
  int number;
  std::string name;
};
example prepare(int n) { return {n, "x"}; }
const std::vector<int> numbers(100);

void train() {
#if MISTAKE
  auto look = [](int n) { static_cast<void>(n); };
#else
  auto look = [](int n) { return n; };
#endif
  auto flow = mr::from(numbers)
            | mr::map(look)   // wrong here
            | mr::map(prepare)
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
