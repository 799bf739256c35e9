// error: invalid use of non-static data member
// lines: 30
// errors: 5
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
#if MISTAKE
  auto batch = mr::batch<example::number>({.size = 4});   // wrong here
#else
  auto batch = mr::batch<&example::number>({.size = 4});
#endif
  mr::session run{mr::from(numbers) | mr::map(prepare) | batch};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
