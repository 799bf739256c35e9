// error: shuffle is given a bare number
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/shuffle.hpp>

namespace mr = millrace;

struct example {
  int number;
};
example prepare(int n) { return {n}; }
const std::vector<int> numbers(100);

void train() {
  auto flow = mr::from(numbers)
            | mr::map(prepare)
#if MISTAKE
            | mr::shuffle(8)   // wrong here
#else
            | mr::shuffle({.window = 8})
#endif
            | mr::batch<&example::number>({.size = 4});
  mr::session run{std::move(flow)};
  for (auto& b : run) static_cast<void>(b.get<&example::number>());
}
